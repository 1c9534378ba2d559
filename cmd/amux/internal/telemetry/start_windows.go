package telemetry

import (
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

func detached(program string, args, env []string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = filepath.VolumeName(program)+`\`, env
	return cmd
}

// launch starts it out of the job of the terminal that this is started in, if that lets it go.
func launch(cmd *exec.Cmd) error {
	again := *cmd
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | windows.CREATE_BREAKAWAY_FROM_JOB}
	err := cmd.Start()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		again.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
		if err = again.Start(); err == nil {
			cmd.Process = again.Process
		}
	}
	return err
}
