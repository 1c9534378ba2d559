//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// become makes this process a program, so that none stands between amux and it.
func become(program string, args []string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{program}, args...), environ())
}
