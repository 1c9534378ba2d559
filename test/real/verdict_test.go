package real

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write proof.txt anew, once all agents have passed all scenarios")

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
	if *update {
		for agent, ran := range whole {
			if !ran {
				t.Fatalf("%s did not pass all scenarios", agent)
			}
		}
		if err := os.WriteFile("proof.txt", []byte(report.proof(2)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile("proof.txt")
	if err != nil {
		t.Fatal(err)
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
