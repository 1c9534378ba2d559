package install

import (
	"os"
	"os/exec"
	"syscall"
)

// syncDir does nothing: Windows has no such call for folders.
func syncDir(string) error { return nil }

// syncFile does nothing: Windows flushes only what is open for writing.
func syncFile(*os.File) error { return nil }

func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func endSession(int) {}

func isBusy(error) bool { return false }
