//go:build unix

package telemetry

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// launch starts a program in a session of its own.
func launch(program string, args, env []string, stdin *os.File) (*exec.Cmd, error) {
	rawio.CloseOnExec()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", env, stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}
