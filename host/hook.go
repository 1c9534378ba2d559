package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
)

// HookTime is how long a hook may take that says nothing else.
const HookTime = 10 * time.Second

// Hook is a command of the user's that is told about a run. It is trusted: a Line
// is given to /bin/sh as it is. One of Line and Argv is set.
type Hook struct {
	Line string
	Argv []string
	Env  []string // NAME=VALUE
	Dir  string
	Time time.Duration // 0: HookTime
}

// Run runs the command with what it is told as JSON on stdin, and returns when it has
// ended or its time is over. Nothing that it started outlives it. An error has the last
// line of its stderr.
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
	most := cmp.Or(k.Time, HookTime)
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	c := command.Command{Env: process.Environ(k.Env), Cwd: k.Dir, Time: most, Stdin: bytes.NewReader(append(data, '\n')), Group: true}
	result := c.Run(limited, argv, io.Discard)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return pluginapi.Errorf(pluginapi.CodeTimeout, "it was killed after %s", most)
	case result.ExitCode == -1:
		return pluginapi.Errorf(pluginapi.CodeSpawn, "%q cannot be started", argv[0])
	case result.ExitCode != 0:
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "it exited with code %d%s", result.ExitCode, lastWords(result.Stderr))
	}
	return nil
}

// lastWords is what a program said last, behind a colon.
func lastWords(stderr []byte) string {
	if last := sandbox.Telling([]byte(printable.String(string(stderr)))); last != "" {
		return ": " + last
	}
	return ""
}
