package telemetry

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// launch starts a program on a console of its own that nobody sees, out of the job of the
// terminal that this is started in, if that lets it go.
func launch(program string, args, env []string, stdin *os.File) (*exec.Cmd, error) {
	start := func(flags uint32) (*exec.Cmd, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env, cmd.Stdin = filepath.VolumeName(program)+`\`, env, stdin
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | flags}
		return cmd, cmd.Start()
	}
	cmd, err := start(windows.CREATE_BREAKAWAY_FROM_JOB)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		cmd, err = start(0)
	}
	return cmd, err
}
