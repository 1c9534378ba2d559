package command

import (
	"syscall"

	"github.com/amux-dev/amux/internal/process"
)

// ownGroup is a process group of its own.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// descendants are not known: only a job has them, and a command is in none.
func descendants(int) []process.ID { return nil }

// sweepCommand has nothing to go by: a command is in no job.
func sweepCommand(string, []process.ID) {}
