package sandbox

import (
	"errors"
	"os/exec"

	"github.com/amux-dev/amux/internal/sys/fault"
)

// Reason says why a program could not be started, or how it ended, and the way out.
func Reason(path string, err error) (why, hint string) {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if why := ended(exit); why != "" {
			return why, ""
		}
		return exit.Error(), ""
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return "it left a process that holds its output open", "it must wait for what it starts, and start nothing here"
	}
	return fault.Start(path, "", err)
}
