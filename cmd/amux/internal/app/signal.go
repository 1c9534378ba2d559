package app

import (
	"os"
	"syscall"
)

// SignalCode is the exit code of a program that a signal ended.
func SignalCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 130
}
