package pty

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
	// limited says that ENXIO means that all are in use.
	limited = false
)

// exhausted names the limit that was reached, if that is what err says.
func exhausted(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("all pseudo-terminals are in use (%s): %w", limits(), err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("no pseudo-terminal can be opened (limit of open files of a process, ulimit -n): %w", err)
	case errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("no pseudo-terminal can be opened (limit of open files of the system, /proc/sys/fs/file-max): %w", err)
	}
	return err
}

// limits are those on the number of pseudo-terminals: of the system, and of the
// mount if it has one of its own.
func limits() string {
	var found []string
	if mounts, err := os.ReadFile("/proc/self/mounts"); err == nil {
		for line := range strings.Lines(string(mounts)) {
			fields := strings.Fields(line)
			if len(fields) < 4 || fields[2] != "devpts" {
				continue
			}
			for option := range strings.SplitSeq(fields[3], ",") {
				if strings.HasPrefix(option, "max=") {
					found = append(found, "mount option "+option+" of "+fields[1])
				}
			}
		}
	}
	if most, err := os.ReadFile("/proc/sys/kernel/pty/max"); err == nil {
		found = append(found, "/proc/sys/kernel/pty/max is "+strings.TrimSpace(string(most)))
	}
	return strings.Join(found, "; ")
}
