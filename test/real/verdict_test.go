package real

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write anew what proof.txt has of the agents that pass all scenarios")

// proof.txt, from which docs/agents.md is made, says what TestAgents saw: it ran
// before this test, whose file is the last. What proof.txt has, an agent that passed all
// its scenarios has to have shown again. An event type that was told once only is not in
// it: chance may have had a part.
func TestProof(t *testing.T) {
	whole := map[string]bool{}
	for _, a := range agents {
		whole[a.id] = true
		for _, s := range scenarios {
			if c, ok := report.cells[[2]string{a.id, s.name}]; !ok || c.state == "failed" {
				whole[a.id] = false
			}
		}
	}
	data, err := os.ReadFile("proof.txt")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("proof.txt", renew(string(data), report.proof(2), whole), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			if _, ran := report.cells[[2]string{a.id, scenarios[0].name}]; ran && !whole[a.id] {
				t.Errorf("%s did not pass all scenarios: proof.txt has what it had", a.id)
			}
		}
		return
	}
	have := map[string]bool{}
	for line := range strings.Lines(report.proof(1)) {
		have[line] = true
	}
	checked := 0
	for line := range strings.Lines(string(data)) {
		agent, _, _ := strings.Cut(line, "\t")
		if ran, known := whole[agent]; !known {
			t.Errorf("%s is none of the agents", agent)
		} else if ran {
			checked++
			if !have[line] {
				t.Errorf("proof.txt has %q, which was not seen; make proof writes it anew", line)
			}
		}
	}
	if checked == 0 {
		t.Skip("no agent passed all its scenarios")
	}
}

// renew is old with the lines of the agents in whole from seen.
func renew(old, seen string, whole map[string]bool) []byte {
	var lines []string
	take := func(text string, anew bool) {
		for line := range strings.Lines(text) {
			if agent, _, _ := strings.Cut(line, "\t"); whole[agent] == anew {
				lines = append(lines, line)
			}
		}
	}
	take(old, false)
	take(seen, true)
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}
