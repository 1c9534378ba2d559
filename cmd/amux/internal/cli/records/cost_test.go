package records

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func spending() []host.Spending {
	tokens := func(n int64) pluginapi.Tokens {
		output, cached := n/10, 2*n
		return pluginapi.Tokens{Input: &n, Output: &output, CacheRead: &cached}
	}
	run := func(agent, project string, day int, usd float64, n int64, tags ...string) host.Spending {
		ended := time.Date(2026, 11, day, 12, 0, 0, 0, time.Local)
		s := host.Spending{Turns: 1, Tokens: tokens(n), Models: []host.ModelTokens{{Model: agent + "-large", Tokens: tokens(n)}}, Run: host.RunInfo{
			ID: clitest.RunID, Agent: agent, Project: project, Tags: tags, Created: ended, Ended: &ended, State: "completed", End: &pluginapi.RunEnd{},
		}}
		if usd > 0 {
			s.Cost = &pluginapi.Money{USD: usd}
		}
		return s
	}
	list := []host.Spending{
		run("claude", "/app", 18, 1.25, 1000, "nightly"), run("claude", "/app", 19, 0.25, 2000, "nightly", "ci"), run("codex", "/lib", 19, 0, 500_000), run("codex", "", 20, 0, 10),
	}
	list[1].Models = append(list[1].Models, host.ModelTokens{Model: "claude-small", Tokens: tokens(30)})
	list[3].Run.Ended, list[3].Run.End, list[3].Models = nil, nil, nil
	return list
}

func TestCost(t *testing.T) {
	t.Parallel()
	today := time.Now().Format(time.DateOnly)
	for _, test := range []struct {
		args  string
		width int
		want  string // lines, separated by |
	}{
		{"cost", 69, "AGENT   RUNS  TOKENS     COST|claude  2     9,300      $1.50|codex   2     1,550,031  -|total   4     1,559,331  $1.50+"},
		{"cost", 80, "AGENT   RUNS  INPUT      OUTPUT  COST|claude  2     9,000      300     $1.50|codex   2     1,500,030  50,001  -|total   4     1,509,030  50,301  $1.50+"},
		{"cost --by tag", 60, "TAG      RUNS  TOKENS     COST|nightly  2     9,300      $1.50|ci       1     6,200      $0.2500|-        2     1,550,031  -|total    4     1,559,331  $1.50+"},
		{"cost --by day --since 2026-11-19", 60, "DAY         RUNS  TOKENS     COST|2026-11-19  2     1,556,200  $0.2500+|TODAY  1     31         -|total       3     1,556,231  $0.2500+"},
		{"cost --by day --until 2026-11-19", 60, "DAY         RUNS  TOKENS  COST|2026-11-18  1     3,100   $1.25"},
		{"cost --by project --agent codex", 60, "PROJECT  RUNS  TOKENS     COST|/lib     1     1,550,000  -|-        1     31         -|total    2     1,550,031  -"},
		{"cost --by model --agent claude", 60, "MODEL         RUNS  TOKENS  COST|claude-large  2     9,300   $1.25+|several       1     0       $0.2500|claude-small  1     93      -|total         2     9,300   $1.50"},
		{"cost --filter state=live", 60, "AGENT  RUNS  TOKENS  COST|codex  1     31      -"},
		{"cost --tag nightly --format {{.Key}}:{{.Runs}}:{{.Tokens}}", 60, "claude:2:9300"},
		{"cost --tag none", 60, ""},
	} {
		b := clitest.New(t, "", clitest.Commands(NewCmdCost))
		b.Host.SpendList = spending()
		b.IO.Width = test.width
		want := strings.ReplaceAll(strings.ReplaceAll(test.want, "|", "\n"), "TODAY", today)
		if code := b.Main(strings.Fields(test.args)...); code != 0 || strings.TrimSuffix(b.Out.String(), "\n") != want {
			t.Errorf("%s: code %d, stdout\n%s\nwant\n%s\nstderr %s", test.args, code, b.Out, want, b.Err)
		}
	}
	b := clitest.New(t, "", clitest.Commands(NewCmdCost))
	b.Host.SpendList = spending()
	if code := b.Main("cost", "--json", "--agent", "claude"); code != 0 || !strings.Contains(b.Out.String(), `"cost_usd": 1.5`) || !strings.Contains(b.Out.String(), `"cache_read_tokens": 6000`) {
		t.Errorf("code %d: %s", code, b.Out)
	}
}

func TestCostRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--by week": "expected one of agent, model, day, tag, project", "--since soon": `invalid --since "soon": expected a duration`,
		"--until x": `invalid --until "x": expected a duration`, "--filter prompt=x": "the index of runs has no prompts",
		"--json --format {{.Key}}": "--json and --format cannot be combined", "--format {{": "invalid --format", "--filter nokey=1": "there is no key",
	} {
		b := clitest.New(t, "", clitest.Commands(NewCmdCost))
		if code := b.Main(append([]string{"cost"}, strings.Fields(args)...)...); code != 2 || !strings.Contains(b.Err.String(), want) {
			t.Errorf("%s: code %d, %s", args, code, b.Err)
		}
	}
}

// A sum over a hundred thousand runs is a matter of adding.
func BenchmarkCosts(b *testing.B) {
	list := spending()
	for b.Loop() {
		sums := costs{by: "model", zone: time.Local, rows: map[string]*costRow{}}
		for i := range 100_000 {
			sums.add(&list[i%len(list)])
		}
		if fmt.Sprint(sums.total.Runs) != "100000" {
			b.Fatal(sums.total)
		}
	}
}
