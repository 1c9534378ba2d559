//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// ended says which signal has ended a program; "" if it exited.
func ended(exit *exec.ExitError) string {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return "it was ended by a signal: " + status.Signal().String()
	}
	return ""
}
