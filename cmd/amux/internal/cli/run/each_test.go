package run

import (
	"strings"
	"syscall"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// What is wrong with a fan-out is said before anything is started.
func TestEachRefuses(t *testing.T) {
	t.Parallel()
	for args, test := range map[string]struct {
		code int
		want string
	}{
		"--each alpha,nope hi":        {3, `there is no agent named "nope"`},
		"--each alpha,beta hi":        {4, "agent beta is not installed, and nothing was started"},
		"--each alpha,Demo hi":        {2, `invalid --each "alpha,Demo"`},
		"--each alpha,demo one two":   {2, "got 2 arguments; --each names the agents"},
		"--each alpha,demo":           {2, "no prompt"},
		"--each alpha --json hi":      {2, "--each cannot be combined with --json"},
		"--each alpha -i hi":          {2, "--each cannot be combined with --interactive"},
		"--each alpha --no-record hi": {2, "--each cannot be combined with --no-record"},
		"--each alpha --resume x hi":  {2, "--each cannot be combined with --resume"},
		"alpha --worktree= hi":        {2, `invalid --worktree "": expected a name`},
		"--worktree fix alpha hi":     {2, "--worktree=fix"},
	} {
		b := newBench(t, "")
		code := b.Main(append([]string{"run"}, strings.Fields(args)...)...)
		if code != test.code || b.Host.Started || !strings.Contains(b.Err.String(), test.want) {
			t.Errorf("%s: code %d: %s", args, code, b.Err)
		}
	}
}

// Each agent gets the prompt, also one from stdin, and a worktree and name of its own.
func TestEachStartsAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, "from stdin")
	var specs []host.RunSpec
	b.Host.Starting = func(<-chan struct{}) error {
		specs = append(specs, b.Host.Spec)
		return nil
	}
	if code := b.Main("run", "--each", "alpha,demo,alpha", "--worktree=try", "--name", "n", "-"); code != 0 {
		t.Fatalf("code %d: %s", code, b.Err)
	}
	for i, want := range []string{"alpha", "demo", "alpha-2"} {
		if s := specs[i]; s.Prompt != "from stdin" || s.Worktree.Name != "try-"+want || s.Name != "n-"+want || s.Agent != strings.TrimSuffix(want, "-2") {
			t.Errorf("%d: %+v", i, s)
		}
	}
	if rows := strings.Count(b.Out.String(), "completed"); rows != 3 {
		t.Errorf("stdout %s", b.Out)
	}
}

// The exit code is that of a run that failed.
func TestEachFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.Run.Result = host.Result{RunID: clitest.RunID, State: code.StateFailed, Err: &pluginapi.Error{Code: pluginapi.CodeRateLimited, Msg: "slow down"}}
	if code := b.Main("run", "--each", "alpha", "hi"); code != 14 || !strings.Contains(b.Err.String(), "slow down") {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

// A signal stops all runs; while they are being started, those that were.
func TestEachInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.Run = clitest.NewRun()
	b.Host.Run.On["stop"] = func(r *clitest.Run) { r.Finish() }
	n := 0
	b.Host.Starting = func(done <-chan struct{}) error {
		if n++; n == 2 {
			b.Signals <- syscall.SIGINT
			<-done
			return pluginapi.Errorf(pluginapi.CodeAborted, "canceled")
		}
		return nil
	}
	if code := b.Main("run", "--each", "alpha,demo", "hi"); code != 130 {
		t.Errorf("code %d: %s", code, b.Err)
	}
	if calls := b.Host.Run.Calls(); len(calls) != 1 || calls[0] != "stop" {
		t.Errorf("calls %v", calls)
	}

	b = newBench(t, "")
	b.Host.Run = clitest.NewRun()
	b.Host.Run.On["kill"] = func(r *clitest.Run) { r.Finish() }
	b.Signals <- syscall.SIGINT
	b.Host.Run.On["stop"] = func(*clitest.Run) { b.Signals <- syscall.SIGINT }
	if code := b.Main("run", "--each", "alpha", "hi"); code != 130 {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

// A run is run again in a new worktree of the same folder, or in the one that it named.
func TestRerunInWorktree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, made := range []bool{true, false} {
		first := host.RunSpec{Agent: "alpha", Prompt: "hi", Workspace: host.Workspace{Cwd: "/gone", Worktree: &host.WorktreeSpec{Name: "w", Made: made, From: dir}}}
		got := specOf(t, first, "rerun", clitest.RunID)
		want := "w"
		if made {
			want = ""
		}
		if got.Cwd != dir || got.Worktree == nil || got.Worktree.Name != want {
			t.Errorf("%s, %+v", got.Cwd, got.Worktree)
		}
	}
}
