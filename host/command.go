package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

const (
	execTime  = 10 * time.Second
	storeTime = time.Minute // of a command that reads an agent's store
	execLimit = 1 << 20

	// Of a command that prints a whole session into a file.
	fileTime  = 5 * time.Minute
	fileLimit = 4 << 30
)

// command is how short commands of the caller's world are run for an adapter. Nothing of
// one goes on when it has ended or was cut off.
type command struct {
	env  []string
	cwd  string
	time time.Duration // 0: execTime
	dir  string        // for what is printed into files; "": nothing is

	limit int64 // of such a file; 0: fileLimit
}

// exec runs what an adapter asks for.
func (c command) exec(ctx context.Context, wanted *pb.Exec) *pluginapi.ExecResult {
	if !wanted.GetToFile() || c.dir == "" {
		return c.run(ctx, wanted.GetArgv())
	}
	result := &pluginapi.ExecResult{Argv: wanted.GetArgv(), ExitCode: -1}
	if os.MkdirAll(c.dir, 0o700) != nil {
		return result
	}
	file, err := os.CreateTemp(c.dir, "stdout")
	if err != nil {
		return result
	}
	c.time = fileTime
	full := c.runToFile(ctx, result, file)
	if err := file.Close(); err != nil || full {
		result.ExitCode = -1 // what is there is not all
	} else {
		result.StdoutFile = file.Name()
	}
	return result
}

// runToFile runs a command that writes into the file itself: some end before a pipe has
// taken what they print (measured with opencode export: 128 KiB of 63 MB). One that
// prints more than fileLimit is cut off.
func (c command) runToFile(ctx context.Context, result *pluginapi.ExecResult, file *os.File) (full bool) {
	ctx, cancel := context.WithCancel(ctx)
	limit := cmp.Or(c.limit, fileLimit)
	large := func() bool {
		info, err := file.Stat()
		return err != nil || info.Size() > limit
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		for look := time.Tick(100 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-look:
				if large() {
					cancel()
				}
			}
		}
	})
	c.runInto(ctx, result, file)
	cancel()
	watch.Wait()
	return large()
}

// run runs a command and keeps what it prints, as far as execLimit.
func (c command) run(ctx context.Context, argv []string) *pluginapi.ExecResult {
	result := &pluginapi.ExecResult{Argv: argv, ExitCode: -1}
	var stdout limited
	c.runInto(ctx, result, &stdout)
	result.Stdout = stdout.kept.Bytes()
	return result
}

func (c command) runInto(ctx context.Context, result *pluginapi.ExecResult, stdout io.Writer) {
	path := ""
	if len(result.Argv) > 0 {
		path = lookPath(result.Argv[0], c.env, c.cwd)
	}
	if path == "" {
		return
	}
	if c.time == 0 {
		c.time = execTime
	}
	ctx, cancel := context.WithTimeout(ctx, c.time)
	defer cancel()
	var stderr limited
	mark := ulid.Make().String()
	var left []process.ID
	cmd := exec.CommandContext(ctx, path, result.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = withMark(c.env, mark), c.cwd, stdout, &stderr
	cmd.WaitDelay = time.Second
	cmd.Cancel = func() error {
		left = descendants(cmd.Process.Pid) // which lose their parent
		return cmd.Process.Kill()
	}
	err := startChild(cmd)
	if err == nil {
		err = cmd.Wait()
		sweepCommand(mark, left)
	}
	result.Stderr = stderr.kept.Bytes()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.ExitCode = int32(exit.ExitCode())
	} else if err == nil {
		result.ExitCode = 0
	}
}

// withMark is an environment with a mark for all that is started in it.
func withMark(env []string, mark string) []string {
	head := process.RunEnv + "="
	env = slices.Clone(env)
	for i, variable := range env {
		if outer, ok := strings.CutPrefix(variable, head); ok && outer != "" {
			env[i] = variable + ":" + mark
			return env
		}
	}
	return append(env, head+mark)
}

// limited keeps the first execLimit bytes and takes the rest. It is no
// bytes.Buffer itself: that could be filled past Write.
type limited struct{ kept bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if room := execLimit - l.kept.Len(); room > 0 {
		l.kept.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
