//go:build unix

package adapter

import (
	"os"
	"os/exec"

	"github.com/amux-dev/amux/pluginapi"
)

func attachLifeline(cmd *exec.Cmd, theirs *os.File) {
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(cmd.Env, pluginapi.LifelineEnv+"=3")
}
