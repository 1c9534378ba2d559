package main

import (
	"errors"
	"flag"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// within is for Linux.
func within([]string) int { return 2 }

func around(args []string) int {
	flags := flag.NewFlagSet("amux-sandbox around", flag.ContinueOnError)
	var allow list
	flags.Var(&allow, "allow", "a host that may be reached")
	command, ok := parse(flags, args)
	if !ok {
		return 2
	}
	parent := os.Getppid()
	signal.Ignore(everybody...)
	gate, err := newGate(allow)
	if err != nil {
		say("%v", err)
		return 2
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		say("%v", err)
		return 2
	}
	go func() { _ = gate.Serve(l) }() // until this process ends
	// Caught signals have their default again in the program that follows; ignored ones would stay so.
	signal.Reset(everybody...)
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, slices.Concat(everybody, leaders)...)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	command = slices.Insert(command, 1, "-D", "WAY_OUT="+port)
	process, err := os.StartProcess(command[0], command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Env: led(os.Environ(), l.Addr().String())})
	if err != nil {
		say("start sandbox-exec: %v", err)
		return 1
	}
	go func() {
		waitFor(parent)
		_ = process.Kill()
		os.Exit(1)
	}()
	go hand(caught, process)
	state, err := process.Wait()
	if err != nil {
		say("wait for sandbox-exec: %v", err)
		return 1
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() && status.Signal() == syscall.SIGKILL {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // as its agent ended
	}
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// waitFor waits until a process has ended.
func waitFor(pid int) {
	queue, err := unix.Kqueue()
	if err != nil { // no descriptor is free for it: look now and then
		for os.Getppid() == pid {
			time.Sleep(50 * time.Millisecond)
		}
		return
	}
	defer unix.Close(queue)
	change := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	for os.Getppid() == pid {
		n, err := unix.Kevent(queue, []unix.Kevent_t{change}, make([]unix.Kevent_t, 1), nil)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
