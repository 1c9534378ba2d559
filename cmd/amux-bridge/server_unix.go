//go:build unix

package main

import (
	"os"
	"syscall"
)

// signals end the bridge, and the server with it.
var signals = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }

// signalCode is how shells tell an end by a signal.
func signalCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 1
}
