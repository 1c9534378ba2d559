package compare

import (
	"reflect"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// A column is there if a run has something for it.
func TestTable(t *testing.T) {
	ms, cost, tokens := int64(125_000), 1.25, int64(1200)
	rows := []Row{
		{RunID: "01M839T3T09DB9TYNHTRF6YQ3R", Agent: "claude", State: "completed", DurationMS: &ms, CostUSD: &cost, Tokens: &pluginapi.Tokens{Input: &tokens},
			Changes: &host.ChangesInfo{Files: 2, Added: 3, Deleted: 1}, Check: &host.Check{ExitCode: 1}, Worktree: "w"},
		{RunID: "01M839T3RCB9WJ3G6NA7WNQD8G", Agent: "codex", State: "timed_out"},
	}
	want := [][]string{
		{"RUN", "AGENT", "WORKTREE", "STATE", "TIME", "TOKENS", "COST", "CHANGED", "CHECK"},
		{"F6YQ3R", "claude", "w", "completed", "2m5s", "1,200", "$1.25", "2 files +3 −1", "exit 1"},
		{"WNQD8G", "codex", "-", "timed out", "-", "-", "-", "-", "-"},
	}
	if got := Table(rows); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := Table(rows[1:])[0]; len(got) != 5 {
		t.Errorf("%q", got)
	}
	for verdict, c := range map[string]*host.Check{"ok": {}, "too long": {ExitCode: -1, TimedOut: true}, "exit 3": {ExitCode: 3}, "": nil} {
		if got := Verdict(c); got != verdict {
			t.Errorf("%+v is %q", c, got)
		}
	}
}
