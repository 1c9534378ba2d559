package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// StoreTime is how long a command may take that reads an agent's store.
const StoreTime = time.Minute

const (
	execTime  = 10 * time.Second
	execLimit = 1 << 20

	// Of a command that prints a whole session into a file.
	fileTime  = 5 * time.Minute
	fileLimit = 4 << 30
)

// Command is how short commands of the caller's world are run for an adapter. Nothing of
// one goes on when it has ended or was cut off.
type Command struct {
	Env  []string
	Cwd  string
	Time time.Duration // 0: 10 s
	Dir  string        // for what is printed into files; "": nothing is

	Stdin io.Reader // nil: empty
	// Group puts the command into a process group of its own, which the terminal's Ctrl-C
	// does not reach.
	Group bool
	// Leaves: that it leaves a process behind with its stdout does not make it fail.
	Leaves bool

	limit int64 // of such a file; 0: fileLimit
}

// Exec runs what an adapter asks for.
func (c Command) Exec(ctx context.Context, wanted *pb.Exec) *pluginapi.ExecResult {
	if !wanted.GetToFile() || c.Dir == "" {
		return c.run(ctx, wanted.GetArgv())
	}
	result := &pluginapi.ExecResult{Argv: wanted.GetArgv(), ExitCode: -1}
	if os.MkdirAll(c.Dir, 0o700) != nil {
		return result
	}
	file, err := os.CreateTemp(c.Dir, "stdout")
	if err != nil {
		return result
	}
	c.Time = fileTime
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
func (c Command) runToFile(ctx context.Context, result *pluginapi.ExecResult, file *os.File) (full bool) {
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

// Run runs a command of amux's own and copies what it prints to stdout. The exit code is -1
// if it could not be started or was cut off; of stderr the beginning is kept.
func (c Command) Run(ctx context.Context, argv []string, stdout io.Writer) *pluginapi.ExecResult {
	result := &pluginapi.ExecResult{Argv: argv, ExitCode: -1}
	c.runInto(ctx, result, stdout)
	return result
}

// run runs a command and keeps what it prints, as far as execLimit.
func (c Command) run(ctx context.Context, argv []string) *pluginapi.ExecResult {
	result := &pluginapi.ExecResult{Argv: argv, ExitCode: -1}
	var stdout limited
	c.runInto(ctx, result, &stdout)
	result.Stdout = stdout.kept.Bytes()
	return result
}

func (c Command) runInto(ctx context.Context, result *pluginapi.ExecResult, stdout io.Writer) {
	path := ""
	if len(result.Argv) > 0 {
		path = Look(result.Argv[0], c.Env, c.Cwd)
	}
	if path == "" {
		return
	}
	if c.Time == 0 {
		c.Time = execTime
	}
	ctx, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	var stderr limited
	mark := ulid.Make().String()
	var left []process.ID
	cmd := exec.CommandContext(ctx, path, result.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = withMark(c.Env, mark), c.Cwd, stdout, &stderr
	cmd.Stdin = c.Stdin
	if c.Group {
		cmd.SysProcAttr = ownGroup()
	}
	cmd.WaitDelay = time.Second
	cmd.Cancel = func() error {
		left = descendants(cmd.Process.Pid) // which lose their parent
		return cmd.Process.Kill()
	}
	err := process.Starting(func() (int, error) { // as a child that is known to be ours
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err == nil {
		err = cmd.Wait()
		sweepCommand(mark, left)
	}
	result.Stderr = stderr.kept.Bytes()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.ExitCode = int32(exit.ExitCode())
	} else if err == nil || c.Leaves && errors.Is(err, exec.ErrWaitDelay) {
		result.ExitCode = 0
	}
}

// version runs a command, and finds its version in what it prints.
func (c Command) version(ctx context.Context, argv []string, pattern string) string {
	result := c.run(ctx, argv)
	return versionIn(append(result.Stdout, result.Stderr...), pattern)
}

// versionIn finds a version in what a program has printed.
func versionIn(said []byte, pattern string) string {
	expression, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return ""
	}
	if match := expression.FindSubmatch(said); len(match) > 1 {
		return string(match[1])
	}
	return ""
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
