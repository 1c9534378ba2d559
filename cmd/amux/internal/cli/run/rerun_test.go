package run

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
)

func rerunBench(t *testing.T, spec host.RunSpec) *clitest.Bench {
	b := clitest.New(t, "", clitest.Commands(NewCmd, NewCmdRerun))
	b.Host.Run.Spec = spec
	return b
}

// specOf returns the spec that a command line starts a run with.
func specOf(t *testing.T, spec host.RunSpec, args ...string) host.RunSpec {
	t.Helper()
	b := rerunBench(t, spec)
	if code := b.Main(args...); code != 0 || !b.Host.Started {
		t.Fatalf("%q: code %d: %s", args, code, b.Err)
	}
	return b.Host.Spec
}

// A run that is run again gets all that the first one got, but what is not recorded.
func TestRerunIsTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, flags := range []string{
		"",
		"--model m --effort max --system s --system-mode replace --resume r --fork --add-dir /x --add-dir /y --mcp t=run --json-schema {} --approve rules --allow Read --deny Write " +
			"--max-turns 3 --max-budget 2.5 --max-tokens 1000 --timeout 1h --idle-timeout 0s --retry=5 --grace 2s --name n --tag t1 --tag t2 --driver d --pty --no-record",
		"--continue --idle-timeout 3m --approve auto",
		"--no-session --allow Read",
	} {
		first := specOf(t, host.RunSpec{}, append([]string{"run", "alpha", "hi", "--cwd", dir}, strings.Fields(flags)...)...)
		again := specOf(t, first, "rerun", clitest.RunID)
		if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", flags, diff)
		}
	}
}

func TestRerunWithChanges(t *testing.T) {
	t.Parallel()
	first := specOf(t, host.RunSpec{}, strings.Fields("run alpha hi --model m --effort low --timeout 1h --approve auto --tag a")...)
	got := specOf(t, first, strings.Fields("rerun "+clitest.RunID+" more --model n --timeout 2h --approve deny --tag b")...)
	want := first
	want.Prompt, want.Model, want.Tags, want.Approve = "more", "n", []string{"b"}, host.ApproveDeny
	want.Timeout = 2 * first.Timeout
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A model belongs to an agent.
	got = specOf(t, first, "rerun", clitest.RunID, "--agent", "demo")
	if got.Agent != "demo" || got.Model != "" || got.Effort != "" || got.Prompt != "hi" || got.Timeout != first.Timeout {
		t.Errorf("%+v", got)
	}
	// Who answers where the run asked depends on who is there now.
	first.Approve, first.Unattended = host.ApproveAsk, false
	if got = specOf(t, first, "rerun", clitest.RunID); got.Approve != host.ApproveDeny || !got.Unattended {
		t.Errorf("approve %s, unattended %v", got.Approve, got.Unattended)
	}
	first.Resume = "s"
	b := rerunBench(t, first)
	if code := b.Main("rerun", clitest.RunID, "--agent", "demo"); code != 2 || b.Host.Started || !strings.Contains(b.Err.String(), "resumed a session of agent alpha") {
		t.Errorf("code %d: %s", code, b.Err)
	}
	if code := rerunBench(t, first).Main("rerun"); code != 2 {
		t.Errorf("without a run: code %d", code)
	}
}
