package real

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// core are the tests that run even for an agent whose proof still holds: they catch
// what a change of the host breaks. A name is a scenario, or that of another test as
// it calls selected.
var core = []string{
	"text", "tool", "approval granted", "resume", "interrupt a tool", "401", "context too long", "amux killed",
	"cause: the provider answers 403", "cause: an unknown model",
}

// isLong reports whether a test is left to make test-real and make proof, unless it is
// of the core: the causes take the agents' own retries, which are minutes.
func isLong(name string) bool { return strings.HasPrefix(name, "cause: ") }

// isOfHost reports whether a test is of something that the host does with any agent. It
// runs for unchanged agents, too, so its file host_NAME_linux_test.go is no part of what a
// proof depends on.
func isOfHost(name string) bool { return strings.HasPrefix(name, "host: ") }

// Environment variables that limit what runs. Without them everything does.
const (
	onlyChanged = "AMUX_TEST_CHANGED" // 1: of agents whose proof holds, only the core
	onlyAgent   = "AMUX_TEST_AGENT"   // the id of the one agent that is tested
)

// chosen is how much of each agent runs.
var chosen selection

type selection struct {
	mu      sync.Mutex
	changed map[string]string // agent → what changed since its proof, "" for nothing; nil: not asked
	ran, of map[string]int
}

// selected reports whether a test of an agent runs. Every test that starts an agent
// asks first, with a name that is unique for that agent. List the name in core if the
// test shall run for an unchanged agent too.
func selected(a agentRow, name string) bool {
	if only := os.Getenv(onlyAgent); only != "" && only != a.id {
		return false
	}
	chosen.mu.Lock()
	defer chosen.mu.Unlock()
	if chosen.of == nil {
		chosen.ran, chosen.of = map[string]int{}, map[string]int{}
	}
	chosen.of[a.id]++
	if (chosen.unchanged(a.id) || chosen.changed != nil && isLong(name)) && !isOfHost(name) && !slices.Contains(core, name) {
		return false
	}
	chosen.ran[a.id]++
	return true
}

// unlessSelected skips a test that has no subtest for each agent.
func unlessSelected(t *testing.T, a agentRow, name string) {
	t.Helper()
	if !selected(a, name) {
		t.Skipf("not selected: %s", chosen.reason(a.id))
	}
}

// compare finds out what changed since proof.txt was written.
func (s *selection) compare(proof string, now map[string]parts) {
	s.changed = map[string]string{}
	for agent, have := range now {
		proved := parts{}
		for line := range strings.Lines(proof) {
			if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 4 && f[0] == agent && f[1] == "hash" {
				proved[f[2]] = f[3]
			}
		}
		var differ []string
		for _, part := range slices.Sorted(maps.Keys(have)) {
			if proved[part] != have[part] {
				differ = append(differ, part)
			}
			delete(proved, part)
		}
		differ = append(differ, slices.Sorted(maps.Keys(proved))...)
		s.changed[agent] = strings.Join(differ, ", ")
		if len(differ) > 0 && len(proved) == 0 && len(differ) == len(have) {
			s.changed[agent] = "all it depends on"
		}
	}
}

// unchanged reports whether only the core of an agent's tests is to run.
func (s *selection) unchanged(agent string) bool {
	return s.changed != nil && s.changed[agent] == ""
}

func (s *selection) reason(agent string) string {
	switch what := s.changed[agent]; {
	case os.Getenv(onlyAgent) != "" && os.Getenv(onlyAgent) != agent:
		return onlyAgent + "=" + os.Getenv(onlyAgent)
	case what == "":
		return "nothing it depends on changed since its proof"
	default:
		return what + " changed since its proof; make proof AGENT=" + agent + " renews it"
	}
}

// print says how much of each agent ran, and why.
func (s *selection) print(w io.Writer) {
	if s.changed == nil {
		return
	}
	for _, a := range agents {
		if s.of[a.id] == 0 {
			continue
		}
		share := "all but most causes"
		switch {
		case s.unchanged(a.id):
			share = "core"
		case s.ran[a.id] == s.of[a.id]:
			share = "all"
		}
		fmt.Fprintf(w, "%s: %s (%d of %d tests): %s\n", a.id, share, s.ran[a.id], s.of[a.id], s.reason(a.id))
	}
}

func TestSelection(t *testing.T) {
	for _, name := range core {
		if !strings.Contains(name, ":") && !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			t.Errorf("there is no scenario %q", name)
		}
	}
	now := map[string]parts{
		"claude": {"plugins/claude": "1", "sdk": "2"},
		"codex":  {"plugins/codex": "1", "sdk": "2"},
		"gemini": {"plugins/gemini": "1", "sdk": "2"},
		"hermes": {"plugins/hermes": "1", "sdk": "2"},
	}
	proof := `claude	hash	plugins/claude	1
claude	hash	sdk	2
claude	passed	text
codex	hash	plugins/codex	0
codex	hash	sdk	2
gemini	hash	plugins/gemini	1
gemini	hash	sdk	2
gemini	hash	plugins/of/old	2
hermes	passed	text
`
	var s selection
	s.compare(proof, now)
	for agent, want := range map[string]string{"claude": "", "codex": "plugins/codex", "gemini": "plugins/of/old", "hermes": "all it depends on"} {
		if got := s.changed[agent]; got != want {
			t.Errorf("%s: changed %q, want %q", agent, got, want)
		}
		if s.unchanged(agent) != (want == "") {
			t.Errorf("%s: unchanged %v", agent, s.unchanged(agent))
		}
	}
	if (&selection{}).unchanged("claude") {
		t.Error("without a comparison an agent counts as unchanged")
	}
}
