package adapter

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/amux-dev/amux/pluginapi"
)

func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

func attachLifeline(cmd *exec.Cmd, theirs *os.File) {
	handle := syscall.Handle(theirs.Fd())
	cmd.SysProcAttr.AdditionalInheritedHandles = append(cmd.SysProcAttr.AdditionalInheritedHandles, handle)
	cmd.Env = append(cmd.Env, pluginapi.LifelineEnv+"="+strconv.FormatUint(uint64(handle), 10))
}

// killGroup does nothing: Windows has no such groups.
func killGroup(int) {}
