package install

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	probeTime   = 5 * time.Second
	probeSize   = 4 << 20
	probeMemory = 1 << 30
	probeLook   = 50 * time.Millisecond
)

// Probe is one short execution of a plugin's executable, supervised as a plugin is at a
// run: a session and an empty folder of its own, where alone it may write, a bare
// environment, no stdin, bounds on time, output and memory. What it has started is
// killed when it has ended.
type Probe struct {
	Executable string
	Args       []string
	// Parent is where its folder is made; "": that for temporary files.
	Parent string
	// Supervision kills what left its session; the zero value leaves that.
	Supervision Supervision
	// Memory is the most that it may hold, with what it starts; 0: 1 GiB.
	Memory int64
}

// Supervision is how the program that this package is part of watches over processes:
// see host.Supervision. What is nil is not done.
type Supervision struct {
	// Mark is the variable whose value Sweep is given.
	Mark string
	// Starting calls what starts a child of this process.
	Starting func(start func() (pid int, err error)) error
	// Sweep kills what was started with that mark, and returns when it is gone.
	Sweep func(mark string)
	// SweepMarked kills what carries the mark: a process that is dead has started it.
	SweepMarked func(mark string)
	// Memory is what a process holds, with all below it.
	Memory func(pid int) int64
}

// Output is what a Probe printed, and how it ended.
type Output struct {
	Stdout, Stderr []byte
	// Err is an *exec.ExitError, or says why it could not be started.
	Err error
	// Late, Full and Large say which bound it reached.
	Late, Full, Large bool
}

// Run executes it. The error is that of ctx, or of the folder.
func (p Probe) Run(ctx context.Context) (Output, error) {
	p.Memory = cmp.Or(p.Memory, probeMemory)
	// The folder has the name of the mark: whoever clears up after this process, should it
	// be killed, learns from it what to kill.
	mark := markPrefix + strings.ToLower(rand.Text())
	dir := filepath.Join(cmp.Or(p.Parent, os.TempDir()), mark)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Output{}, WriteError(err)
	}
	defer os.RemoveAll(dir)
	for tries := 0; ; tries++ {
		out := p.once(ctx, dir, mark)
		// A fork elsewhere may for a moment still have the file that it was written through.
		if isBusy(out.Err) && tries < 100 && ctx.Err() == nil {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		return out, ctx.Err()
	}
}

// markPrefix begins the marks of probes.
const markPrefix = "amux-describe-"

// sweepProbes kills what the probes of a process that was killed have left, by their
// folders in parent.
func (s Supervision) sweepProbes(parent string) {
	if s.SweepMarked == nil {
		return
	}
	folders, _ := filepath.Glob(filepath.Join(parent, markPrefix+"*"))
	for _, folder := range folders {
		s.SweepMarked(filepath.Base(folder))
	}
}

func (p Probe) once(outer context.Context, dir, mark string) Output {
	ctx, cancel := context.WithTimeout(outer, probeTime)
	defer cancel()
	var stdout, stderr head
	cmd := exec.CommandContext(ctx, p.Executable, p.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &stdout, &stderr, time.Second
	// Interpreters are found by env in PATH; Windows needs its system folder.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	if p.Supervision.Mark != "" {
		cmd.Env = append(cmd.Env, p.Supervision.Mark+"="+mark)
	}
	if runtime.GOOS == "windows" {
		cmd.Env = append(cmd.Env, "SYSTEMROOT="+os.Getenv("SYSTEMROOT"), "TMP="+dir, "TEMP="+dir)
	}
	ownSession(cmd)
	over := make(chan struct{})
	start := func() (int, error) {
		if err := sandbox.Start(cmd, sandbox.Holding(p.Memory), over); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	}
	var err error
	if p.Supervision.Starting != nil {
		err = p.Supervision.Starting(start)
	} else {
		_, err = start()
	}
	var large atomic.Bool
	late := false
	if err == nil {
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			p.watchMemory(cmd.Process.Pid, over, func() { large.Store(true); cancel() })
		}()
		err = cmd.Wait()
		late = errors.Is(ctx.Err(), context.DeadlineExceeded) && outer.Err() == nil
		close(over)
		<-watched
		endSession(cmd.Process.Pid)
		if p.Supervision.Sweep != nil {
			p.Supervision.Sweep(mark)
		}
	} else {
		close(over)
	}
	return Output{
		Stdout: stdout.kept.Bytes(), Stderr: stderr.kept.Bytes(), Err: err,
		Late: late, Full: stdout.full, Large: large.Load(),
	}
}

// watchMemory calls excess once a process and what is below it hold too much.
func (p Probe) watchMemory(pid int, over <-chan struct{}, excess func()) {
	if p.Supervision.Memory == nil {
		return
	}
	ticker := time.NewTicker(probeLook)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			if p.Supervision.Memory(pid) > p.Memory {
				excess()
				return
			}
		}
	}
}

// describe is what an executable prints with --amux-describe.
func (p Probe) describe(ctx context.Context) ([]byte, error) {
	p.Args = []string{describeFlag}
	out, err := p.Run(ctx)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) ([]byte, error) {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s %s "+format, append([]any{filepath.Base(p.Executable), describeFlag}, args...)...)
	}
	switch {
	case out.Large:
		return bad("holds more than %d MiB of memory", probeMemory>>20)
	case out.Late:
		return bad("did not end within %v%s", probeTime, lastLine(out.Stderr))
	case out.Full:
		return bad("prints more than 4 MiB")
	case out.Err != nil:
		why, hint := sandbox.Reason(p.Executable, out.Err)
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s %s failed: %s%s", filepath.Base(p.Executable), describeFlag, why, lastLine(out.Stderr)).WithHint("%s", hint)
	}
	return out.Stdout, nil
}

// lastLine is the line of stderr that tells most.
func lastLine(stderr []byte) string {
	if line := sandbox.Telling(stderr); line != "" {
		return ": " + line
	}
	return ""
}

// head keeps the first bytes that are written. It is no bytes.Buffer itself: that
// could be filled past Write.
type head struct {
	kept bytes.Buffer
	full bool
}

func (h *head) Write(b []byte) (int, error) {
	if h.kept.Len()+len(b) > probeSize {
		h.full = true
		return len(b), nil
	}
	return h.kept.Write(b)
}
