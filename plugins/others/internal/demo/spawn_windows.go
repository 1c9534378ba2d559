package demo

import (
	"os"
	"os/exec"
	"syscall"
)

const detachedProcess = 0x8

func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}

// ignoreTerm does nothing: Windows has no such signal.
func ignoreTerm() {}

func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
}
