// Package command runs short commands of the caller's world, of which nothing is left when they
// have ended, and finds their programs.
package command

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

	"github.com/amux-dev/amux/internal/process"
)

const (
	execTime  = 10 * time.Second
	execLimit = 1 << 20

	// Of a command that prints a whole session into a file.
	fileTime  = 5 * time.Minute
	fileLimit = 4 << 30
)

// Command is how short commands of the caller's world are run. Nothing of one goes on when it
// has ended or was cut off.
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

// Result is how a command ended.
type Result struct {
	ExitCode int    // -1: it could not be started, or was cut off
	Stdout   []byte // its beginning, up to a MiB
	Stderr   []byte // as much
	File     string // with all of stdout, where that was asked for
}

// ToFile runs a command that prints much, into a file in Dir: Result.File.
func (c Command) ToFile(ctx context.Context, argv []string) Result {
	result := Result{ExitCode: -1}
	if os.MkdirAll(c.Dir, 0o700) != nil {
		return result
	}
	file, err := os.CreateTemp(c.Dir, "stdout")
	if err != nil {
		return result
	}
	c.Time = fileTime
	result, full := c.runToFile(ctx, argv, file)
	if err := file.Close(); err != nil || full {
		result.ExitCode = -1 // what is there is not all
	} else {
		result.File = file.Name()
	}
	return result
}

// runToFile runs a command that writes into the file itself: some end before a pipe has
// taken what they print (measured with opencode export: 128 KiB of 63 MB). One that
// prints more than fileLimit is cut off.
func (c Command) runToFile(ctx context.Context, argv []string, file *os.File) (result Result, full bool) {
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
	result = c.Run(ctx, argv, file)
	cancel()
	watch.Wait()
	return result, large()
}

// Exec runs a command and keeps what it prints.
func (c Command) Exec(ctx context.Context, argv []string) Result {
	var stdout limited
	result := c.Run(ctx, argv, &stdout)
	result.Stdout = stdout.kept.Bytes()
	return result
}

// Run runs a command and copies what it prints to stdout.
func (c Command) Run(ctx context.Context, argv []string, stdout io.Writer) Result {
	result := Result{ExitCode: -1}
	path := ""
	if len(argv) > 0 {
		path = Look(argv[0], c.Env, c.Cwd)
	}
	if path == "" {
		return result
	}
	if c.Time == 0 {
		c.Time = execTime
	}
	ctx, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	var stderr limited
	mark := ulid.Make().String()
	var left []process.ID
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
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
		result.ExitCode = exit.ExitCode()
	} else if err == nil || c.Leaves && errors.Is(err, exec.ErrWaitDelay) {
		result.ExitCode = 0
	}
	return result
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
