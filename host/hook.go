package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/amux-dev/amux/host/internal/program"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/pluginapi"
)

// HookTime is how long a hook may take.
const HookTime = 10 * time.Second

// Hook is a command of the user's that is told what became of a run. It is trusted: a Line
// is given to /bin/sh as it is. One of Line and Argv is set.
type Hook struct {
	Line string
	Argv []string
	Env  []string // NAME=VALUE
	Dir  string
}

// Run runs the command with what it is told as JSON on stdin, and returns when it has
// ended or HookTime is over. Nothing that it started outlives it.
func (k Hook) Run(ctx context.Context, told any) error {
	data, err := json.Marshal(told)
	if err != nil {
		return err
	}
	argv := k.Argv
	if k.Line != "" {
		if !spawn.POSIXShell {
			return pluginapi.Errorf(pluginapi.CodeConfig, "a command line needs a POSIX shell, which this system lacks").
				WithHint("name program and arguments in a list")
		}
		argv = []string{"/bin/sh", "-c", k.Line}
	}
	limited, cancel := context.WithTimeout(ctx, HookTime)
	defer cancel()
	c := program.Command{Env: process.Environ(k.Env), Cwd: k.Dir, Time: HookTime, Stdin: bytes.NewReader(append(data, '\n')), Group: true}
	result := c.Run(limited, argv, io.Discard)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return pluginapi.Errorf(pluginapi.CodeTimeout, "it was killed after %s", HookTime)
	case result.ExitCode == -1:
		return pluginapi.Errorf(pluginapi.CodeSpawn, "%q cannot be started", argv[0])
	case result.ExitCode != 0:
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "it exited with code %d: %.300s", result.ExitCode, result.Stderr)
	}
	return nil
}
