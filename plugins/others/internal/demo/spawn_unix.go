//go:build unix

package demo

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func killSelf() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
