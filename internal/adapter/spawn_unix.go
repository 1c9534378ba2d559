//go:build unix

package adapter

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/amux-dev/amux/pluginapi"
)

func attachLifeline(cmd *exec.Cmd, theirs *os.File) {
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(cmd.Env, pluginapi.LifelineEnv+"=3")
}

// killGroup ends what a plugin has left in its session's first group.
func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }
