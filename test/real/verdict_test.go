package real

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write again what "+proofFile+" has of the agents that pass all their tests")

// proofFile has a line for each agent and what it was seen to do, from which
// docs/agents.md is made, and the hashes of what that depends on.
const proofFile = "proof.txt"

// wholeAgents are the agents whose scenarios all ran and passed; of the others it has
// false.
func wholeAgents() map[string]bool {
	report.mu.Lock()
	defer report.mu.Unlock()
	whole := map[string]bool{}
	for _, a := range agents {
		whole[a.id] = !report.bad[a.id]
		for _, s := range scenarios {
			if c, ok := report.cells[[2]string{a.id, s.name}]; !ok || c.state == "failed" {
				whole[a.id] = false
			}
		}
	}
	return whole
}

// TestProof checks that an agent that passed all its scenarios has shown again what
// proof.txt has of it. It is in the last file, so that TestAgents ran before it. An
// event type that was told once only is not in proof.txt: chance may have had a part.
func TestProof(t *testing.T) {
	if *update {
		t.Skip("proof.txt is written again")
	}
	whole := wholeAgents()
	data, err := os.ReadFile(proofFile)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for line := range strings.Lines(report.proof(1)) {
		have[line] = true
	}
	checked := 0
	for line := range strings.Lines(string(data)) {
		agent, rest, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(rest, "hash\t") || strings.HasPrefix(rest, "cause\t") {
			continue // TestCauses itself compares those with the table
		}
		if ran, known := whole[agent]; !known {
			t.Errorf("%s is not one of the agents", agent)
		} else if ran {
			checked++
			if !have[line] {
				t.Errorf("proof.txt has %q, which was not seen; make proof AGENT=%s writes its lines again", line, agent)
			}
		}
	}
	if checked == 0 {
		t.Skip("no agent passed all its scenarios")
	}
}

// updateProof writes the lines of the agents of which every test passed.
func updateProof(now map[string]parts) error {
	old, err := os.ReadFile(proofFile)
	if err != nil {
		return err
	}
	whole := wholeAgents()
	seen := report.proof(2)
	for agent, p := range now {
		if !whole[agent] || report.badCauses[agent] || flag.Lookup("test.run").Value.String() != "" {
			continue // not all of its tests ran and passed
		}
		for name, hash := range p {
			seen += agent + "\thash\t" + name + "\t" + hash + "\n"
		}
	}
	if err := os.WriteFile(proofFile, renew(string(old), seen, whole), 0o644); err != nil {
		return err
	}
	var errs []error
	for _, a := range agents {
		if _, ran := report.cells[[2]string{a.id, scenarios[0].name}]; ran && !whole[a.id] {
			errs = append(errs, fmt.Errorf("%s did not pass all its tests: %s has what it had", a.id, proofFile))
		}
	}
	return errors.Join(errs...)
}

// renew is old with the lines of the agents in whole from seen.
func renew(old, seen string, whole map[string]bool) []byte {
	var lines []string
	take := func(text string, again bool) {
		for line := range strings.Lines(text) {
			if agent, _, _ := strings.Cut(line, "\t"); whole[agent] == again {
				lines = append(lines, line)
			}
		}
	}
	take(old, false)
	take(seen, true)
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}
