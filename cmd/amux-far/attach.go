package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
)

// attach is the far end of a link.
func attach(in io.Reader, out io.WriteCloser) error {
	far := shim.Far{
		Dir: runDir,
		Start: func(dir string, hello shim.Hello) (io.ReadWriteCloser, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			started, err := shim.Start(filepath.Join(filepath.Dir(self), "amux-shim"), dir, nil)
			if err != nil {
				return nil, err
			}
			return started.Conn, nil
		},
		Dial: shim.Connect, Lives: lives, Sweep: func(id string) { process.Sweep(id, false) }, Left: leave,
	}
	return far.Attach(in, out)
}
