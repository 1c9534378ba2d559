package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/pty"
	"github.com/amux-dev/amux/host/shim"
)

// arguments is how many there are.
const arguments = 2

func run(args []string) error {
	launch, err := strconv.Atoi(args[1])
	if err == nil { // it was inherited, and is not to be passed on
		err = windows.SetHandleInformation(windows.Handle(launch), windows.HANDLE_FLAG_INHERIT, 0)
	}
	if err != nil {
		return fmt.Errorf("the launch connection %s: %w", args[1], err)
	}
	debug.SetGCPercent(40)
	job, err := process.NewJob()
	if err != nil {
		return fmt.Errorf("make the run's job: %w", err)
	}
	// The end of this process ends what is in the job, so it is not closed.
	pid := os.Getpid()
	start, _ := process.Start(pid)
	return shim.Run(shim.Config{
		Dir:       args[0],
		Launch:    launch,
		Tree:      job,
		Terminals: shim.Terminals{Open: openConsole, Answerer: answerer},
		Log:       os.Stderr,
		Self:      shim.Info{PID: pid, Start: start, BootID: process.BootID()},
	})
}

func openConsole(cols, rows int) (shim.Console, error) {
	console, err := pty.OpenConsole(cols, rows)
	if err != nil {
		return nil, err
	}
	return console, nil
}
