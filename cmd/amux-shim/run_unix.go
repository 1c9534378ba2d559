//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// arguments is how many there are.
const arguments = 1

func run(args []string) error {
	const launchFD = 3
	rawio.CloseOnExec() // that, and what a host was given that does not know of it
	debug.SetGCPercent(40)
	if err := process.AdoptOrphans(); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	pid := os.Getpid()
	start, _ := process.Start(pid)
	return shim.Run(shim.Config{
		Dir:    args[0],
		Launch: launchFD,
		Tree:   process.Tree(pid),
		Terminals: shim.Terminals{
			Open: pty.Open, Resize: pty.Resize, Answerer: answerer,
		},
		Log:  os.Stderr,
		Self: shim.Info{PID: pid, Start: start, BootID: process.BootID()},
	})
}
