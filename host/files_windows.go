package host

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/host/store"
)

// checkPrivate trusts the user's own temp folder, which Windows protects.
func checkPrivate(string) error { return nil }

func isDiskFull(err error) bool { return errors.Is(err, windows.ERROR_DISK_FULL) }

// sweepRun has nothing to do: no run can be started on Windows yet.
func (h *Host) sweepRun(store.Meta) {}

// isOurs is true: temp folders are the user's own.
func isOurs(os.FileInfo) bool { return true }

// marked is false: no run can be started on Windows yet.
func (h *Host) marked(string) bool { return false }
