//go:build unix

package agents

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/process"
	amuxshim "github.com/amux-dev/amux/internal/shim"
)

// HastyShim is a shim's executable that waits for a full disk no longer than
// told; the real one does for half a minute.
func (s *Stage) HastyShim(wait time.Duration) string {
	s.t.Helper()
	path := s.Root + "/hasty-shim"
	launcher := fmt.Sprintf("#!/bin/sh\nexec '%s' %s shim %s \"$@\"\n", self(), castArg, wait)
	if err := os.WriteFile(path, []byte(launcher), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func runShim(args []string) int {
	const launchFD = 3
	syscall.CloseOnExec(launchFD)
	wait, err := time.ParseDuration(args[0])
	if err == nil {
		err = process.AdoptOrphans()
	}
	if err == nil {
		pid := os.Getpid()
		start, _ := process.Start(pid)
		err = amuxshim.Run(amuxshim.Config{
			Dir: args[1], Launch: launchFD, Tree: process.Tree(pid), DiskWait: wait,
			Self: amuxshim.Info{PID: pid, Start: start, BootID: process.BootID()},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
