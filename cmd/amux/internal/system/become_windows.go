package system

import (
	"errors"
	"os"
	"os/exec"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// become runs another program with this one's streams, and ends as that does: Windows
// cannot replace a process. The console sends Ctrl-C to both.
func become(program string, args, env []string) error {
	_, stop := catchSignals()
	defer stop()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return app.ExitError(failed.ExitCode())
	}
	return err
}
