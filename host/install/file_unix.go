//go:build unix

package install

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// syncDir makes renames in a folder last.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return err
	}
	return nil
}

func syncFile(f *os.File) error { return f.Sync() }

// ownSession takes a command away from the terminal, with all that it starts.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endSession ends what a command has left.
func endSession(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func isBusy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }
