package top

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

var update = flag.Bool("update", false, "write testdata again")

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// screen is a model with made-up runs, at a time that stands still.
func screen(t *testing.T, width, height int, runs ...host.RunInfo) *model {
	t.Helper()
	m := newModel(&records{host: &clitest.Host{Run: clitest.NewRun()}, fits: func(host.RunInfo) bool { return true }, recover: func() {}, ctx: t.Context()}, runs, false)
	m.now = func() time.Time { return now }
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

func press(m *model, keys ...string) (cmd tea.Cmd) {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace}
	for _, k := range keys {
		key := tea.KeyPressMsg{Code: named[k]}
		if key.Code == 0 {
			key = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		_, cmd = m.Update(key)
	}
	return cmd
}

func run(i int, state string) host.RunInfo {
	r := host.RunInfo{ID: fmt.Sprintf("01M7X9DSQ827BHWDSGN2DG%04d", i), Agent: "alpha", State: state, Prompt: "fix it", Created: now.Add(-time.Duration(i) * time.Minute)}
	if state == code.StateCompleted || state == code.StateFailed {
		ended := now
		r.Ended, r.End = &ended, &pluginapi.RunEnd{State: state, Cost: &pluginapi.Money{USD: 0.25}}
	}
	return r
}

// What the screen shows is kept as text; each line fits, whatever the agents write.
func TestScreens(t *testing.T) {
	t.Parallel()
	wide, deceiving := run(1, code.StateRunning), run(2, code.StateRunning)
	wide.Name, wide.Prompt = "日本語のとても長い名前です", "修正してください 🚀🚀 "+strings.Repeat("長い", 60)
	deceiving.Name, deceiving.Agent = "a\x1b[2J\u202eb\nc", "beta\rx"
	runs := []host.RunInfo{wide, deceiving, run(3, code.StateWaiting), run(4, code.StateCompleted), run(5, code.StateFailed)}
	for name, test := range map[string]struct {
		width, height int
		keys          []string
	}{
		"list": {80, 24, nil}, "all": {80, 24, []string{"A", "down"}}, "narrow": {44, 10, []string{"A"}}, "wide": {140, 12, nil},
		"filter": {80, 12, []string{"A", "/", "b", "e", "x", "backspace"}}, "sure": {80, 12, []string{"down", "s"}},
	} {
		m := screen(t, test.width, test.height, runs...)
		press(m, test.keys...)
		lines := strings.Split(m.View().Content, "\n")
		if len(lines) != test.height {
			t.Errorf("%s has %d lines, want %d", name, len(lines), test.height)
		}
		for i, line := range lines {
			if n := ansi.StringWidth(line); n > test.width {
				t.Errorf("%s: line %d takes %d columns of %d: %q", name, i, n, test.width, line)
			}
			if strings.ContainsAny(line, "\x1b\r\u202e") {
				t.Errorf("%s: control characters in %q", name, line)
			}
			lines[i] = strings.TrimRight(line, " ")
		}
		golden(t, name, strings.Join(lines, "\n")+"\n")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
	}
}

// The selected row stays on screen, over a thousand runs too.
func TestThousandRows(t *testing.T) {
	t.Parallel()
	var runs []host.RunInfo
	for i := range 1000 {
		runs = append(runs, run(i, code.StateRunning))
	}
	m := screen(t, 80, 24, runs...)
	for _, test := range []struct {
		key      string
		selected int
	}{{"", 0}, {"end", 999}, {"up", 998}, {"home", 0}, {"up", 0}, {"pgdown", 19}, {"pgdown", 38}} {
		if test.key != "" {
			press(m, test.key)
		}
		if want := "> running   " + runs[test.selected].ID[20:]; !strings.Contains(m.View().Content, want) {
			t.Errorf("after %q: no %q in\n%s", test.key, want, m.View().Content)
		}
	}
}

// A key that was pressed before the question could be read is no answer, and nothing is
// done to a run without a second key.
func TestKeysThatCount(t *testing.T) {
	t.Parallel()
	asking := run(1, code.StateWaiting)
	event, err := json.Marshal(pluginapi.ApprovalRequest{InteractionID: "q", ToolName: "Bash", Detail: "make", RiskLevel: "low"})
	if err != nil {
		t.Fatal(err)
	}
	question := host.Question{RunID: asking.ID, ID: "q", Approval: true, Rules: []string{"Bash(make)"}, Event: event}
	at := now
	m := screen(t, 80, 24, asking)
	m.now = func() time.Time { return at }
	called := func(cmd tea.Cmd) string {
		if cmd == nil {
			return ""
		}
		if d, ok := cmd().(done); ok {
			return d.what
		}
		return ""
	}
	if got := called(press(m, "y")); got != "" || !strings.Contains(m.View().Content, "Enter shows what it asks") {
		t.Errorf("in the list: %q", got)
	}
	press(m, "enter")
	m.Update(look{live: []host.RunInfo{asking}, open: &opened{run: asking, questions: []host.Question{question}}})
	if !strings.Contains(m.View().Content, "make") {
		t.Errorf("the question is not on screen:\n%s", m.View().Content)
	}
	if got := called(press(m, "y")); got != "" || !strings.Contains(m.View().Content, "press it again") {
		t.Errorf("too early: %q", got)
	}
	at = at.Add(time.Second)
	for key, want := range map[string]string{"y": "approved", "n": "denied"} {
		if got := called(press(m, key)); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if got := called(press(m, "a", "x")); got != "" {
		t.Errorf("a without a yes: %q", got)
	}
	if got := called(press(m, "a", "y")); got != "allowed" {
		t.Errorf("a: %q", got)
	}
	for key, want := range map[string]string{"i": "interrupted", "s": "asked to stop", "p": "paused"} {
		if got := called(press(m, key, "n")); got != "" {
			t.Errorf("%s without a yes: %q", key, got)
		}
		if got := called(press(m, key, "y")); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	press(m, "esc")
	if m.open != "" || press(m, "q") == nil {
		t.Error("q does not leave")
	}
}

// A look follows what the records say: ended runs leave the live ones, removed ones go.
func TestLooks(t *testing.T) {
	t.Parallel()
	a, b := run(1, code.StateRunning), run(2, code.StateRunning)
	m := screen(t, 80, 24, a, b)
	m.Update(look{live: []host.RunInfo{a}, ended: []host.RunInfo{run(2, code.StateFailed)}, doing: map[string]string{a.ID: "Bash make"}})
	if got := m.View().Content; !strings.Contains(got, "1 live · 1 ended") || !strings.Contains(got, "Bash make") {
		t.Errorf("%s", got)
	}
	m.Update(look{all: true})
	if got := m.View().Content; !strings.Contains(got, "0 live · 0 ended") || !strings.Contains(got, "no runs yet") {
		t.Errorf("%s", got)
	}
	m.Update(look{err: context.DeadlineExceeded})
	if got := m.View().Content; !strings.Contains(got, "error: ") {
		t.Errorf("%s", got)
	}
}

// A run whose end is recorded a moment before its mark goes is in neither list then. It stays on screen.
func TestRunBetweenTheLists(t *testing.T) {
	t.Parallel()
	ending := clitest.Finished()
	h := &clitest.Host{Run: ending}
	r := &records{host: h, fits: func(host.RunInfo) bool { return true }, recover: func() {}, ctx: t.Context()}
	live := host.RunInfo{ID: ending.ID(), State: code.StateRunning}
	newModel(r, []host.RunInfo{live}, false)
	r.listed = time.Time{} // all are listed again
	l, ok := r.look(nil, "").(look)
	if !ok || l.err != nil || !l.all || len(l.live) != 0 || len(l.ended) != 1 || l.ended[0].ID != ending.ID() {
		t.Errorf("%+v", l)
	}
}

// Without a terminal that it can draw on there is no dashboard.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, "", clitest.Commands(NewCmd))
	if code := b.Main("top"); code != 2 || !strings.Contains(b.Err.String(), "amux ps") {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

// d shows what the open run has changed, in place of its output.
func TestDiffOfARun(t *testing.T) {
	t.Parallel()
	m := screen(t, 80, 24, run(1, code.StateRunning))
	press(m, "d")
	if said := strings.Join(m.lines(), "\n"); !strings.Contains(said, "Enter opens a run") {
		t.Errorf("without an open run: %s", said)
	}
	press(m, "enter")
	if press(m, "d") == nil {
		t.Fatal("nothing is asked for")
	}
	for _, test := range []struct {
		msg  diff
		says string
	}{
		{diff{id: m.open, err: errors.New("no git")}, "error: no git"},
		{diff{id: m.open}, "nothing has changed so far"},
		{diff{id: "another", text: "-x\n+elsewhere\n"}, ""},
		{diff{id: m.open, text: "-one\n+two\n" + strings.Repeat(" same\n", 100)}, "-one\n+two\n same"},
	} {
		m.Update(test.msg)
		said := strings.Join(m.lines(), "\n")
		if !strings.Contains(said, test.says) || strings.Contains(said, "elsewhere") {
			t.Errorf("%+v: %s", test.msg, said)
		}
	}
	press(m, "esc")
	if said := strings.Join(m.lines(), "\n"); m.open == "" || strings.Contains(said, "+two") {
		t.Errorf("Esc closed more than the diff: %s", said)
	}
}
