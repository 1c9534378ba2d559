//go:build unix

// Amux-shim keeps one run: it owns the agent's stdio, its process tree and the
// journal. The host starts it with the run's directory as its only argument and
// the launch connection as file descriptor 3. It links neither gRPC nor cobra
// and is small on purpose: there is one for each run.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/pty"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/vt"
	"github.com/amux-dev/amux/internal/rawio"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "amux-shim keeps a run of amux and is started by it; see: amux --help")
		os.Exit(2)
	}
	if err := keep(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "amux-shim:", err)
		os.Exit(1)
	}
}

func keep(dir string) error {
	const launchFD = 3
	rawio.CloseOnExec() // that, and what a host was given that does not know of it
	debug.SetGCPercent(40)
	if err := process.AdoptOrphans(); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	pid := os.Getpid()
	start, _ := process.Start(pid)
	return shim.Keep(shim.Config{
		Dir:    dir,
		Launch: launchFD,
		Tree:   process.Tree(pid),
		Terminals: shim.Terminals{
			Open: pty.Open, Resize: pty.Resize,
			Answerer: func(cols, rows int) shim.Answerer { return vt.New(cols, rows) },
		},
		Log:  os.Stderr,
		Self: shim.Info{PID: pid, Start: start, BootID: process.BootID()},
	})
}
