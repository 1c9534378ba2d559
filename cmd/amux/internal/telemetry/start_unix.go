//go:build unix

package telemetry

import (
	"os/exec"
	"syscall"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

func detached(program string, args, env []string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func launch(cmd *exec.Cmd) error {
	rawio.CloseOnExec()
	return cmd.Start()
}
