package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/shim"
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
	job, err := process.EnterJob() // before anything is started: all of it is in the job
	if err != nil {
		return fmt.Errorf("make the run's job: %w", err)
	}
	pid := os.Getpid()
	start, _ := process.Start(pid)
	return shim.Run(shim.Config{
		Dir:       args[0],
		Launch:    launch,
		Tree:      job,
		Terminals: shim.Terminals{Start: startConsole, Answerer: answerer},
		Log:       os.Stderr,
		Self:      shim.Info{PID: pid, Start: start, BootID: process.BootID()},
	})
}

func startConsole(program string, argv []string, attr *syscall.ProcAttr, cols, rows int) (shim.Console, error) {
	console, err := pty.Start(program, argv, attr, cols, rows)
	if err != nil {
		return nil, err
	}
	return console, nil
}
