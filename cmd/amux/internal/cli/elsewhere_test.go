package cli

import (
	"strings"
	"testing"
)

// What docker, gh and the agents' own CLIs call otherwise is understood, or said in the
// words of amux.
func TestWordsOfOtherTools(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"exec x": "in amux that is amux send RUN", "cancel x": "amux stop RUN", "login": "amux agents auth AGENT", "restart x": "amux rerun RUN",
		"run --rm alpha hi": "in amux that is --no-record", "run -it alpha hi": "-i for a conversation", "run -p hi alpha": "the prompt is an argument",
		"run alpha hi --yolo": "in amux that is --approve auto", "run alpha --dangerously-skip-permissions hi": "--approve auto", "logs x --since 1h": "-n LINES", "ps -l": "-n 1", "ps -f state=ended": "--filter KEY=VALUE",
		"run list": `in amux that is amux ps; for this prompt name an agent: amux run AGENT "list"`, "stats": "amux top", "container ls": "amux ps",
	} {
		b := newBench(t, "")
		if code := b.Main(strings.Fields(args)...); code != 2 || !strings.Contains(b.Err.String(), want) {
			t.Errorf("%s: code %d: %s", args, code, b.Err)
		}
	}
	b := newBench(t, "")
	if code := b.Main("run", "view", "x"); code != 3 || !strings.Contains(b.Err.String(), "in amux that is amux inspect RUN") {
		t.Errorf("code %d: %s", code, b.Err)
	}
	for _, args := range []string{"agent ls", "plugins ls", "session ls", "agents list", "prune --dry-run", "run -m big -e A=b alpha hi", "log --tail 1 --help", "kill -s INT --help", "view -f {{.ID}} --help", "delete -f --help", "unpause --help", "worktrees --help"} {
		b := newBench(t, "")
		if code := b.Main(strings.Fields(args)...); code != 0 {
			t.Errorf("%s: code %d: %s", args, code, b.Err)
		}
	}
}
