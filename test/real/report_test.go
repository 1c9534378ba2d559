package real

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// report collects the table agent × scenario that ends a test run.
var report results

type results struct {
	mu    sync.Mutex
	cells map[[2]string]cell // agent, scenario
	seen  map[[2]string]int  // agent, event type → how often TestAgents was told it
	bad   map[string]bool    // agents of which any test failed, but for TestCauses
	// badCauses are those of which a cause had another code than the table says: what they
	// can do is proved all the same, but not that nothing needs to run again.
	badCauses map[string]bool

	causes map[[2]string]string // agent, cause → code, perhaps with a reason
}

type cell struct {
	state, reason string // passed, failed, n.a.
	took          time.Duration
}

// keep notes how t ended, when it has ended.
func (r *results) keep(t *testing.T, agent, scenario string) {
	since := time.Now()
	t.Cleanup(func() {
		c := cell{state: "passed", took: time.Since(since)}
		switch {
		case t.Failed():
			c.state = "failed"
		case t.Skipped():
			return
		}
		r.set(agent, scenario, c)
	})
}

func (r *results) set(agent, scenario string, c cell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cells == nil {
		r.cells = map[[2]string]cell{}
	}
	r.cells[[2]string{agent, scenario}] = c
}

// blame notes at the end of t whether a test of an agent failed.
func (r *results) blame(t *testing.T, agent string) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		bad := &r.bad
		if strings.HasPrefix(t.Name(), "TestCauses/") {
			bad = &r.badCauses
		}
		if *bad == nil {
			*bad = map[string]bool{}
		}
		(*bad)[agent] = true
	})
}

func (r *results) see(agent string, t pluginapi.Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[[2]string]int{}
	}
	r.seen[[2]string{agent, string(t)}]++
}

// cause notes what amux says of a cause.
func (r *results) cause(agent, name, said string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.causes == nil {
		r.causes = map[[2]string]string{}
	}
	r.causes[[2]string{agent, name}] = said
}

// proof is what test/real/proof.txt is to say: a line for each scenario that an agent
// passes or cannot have, and for each event type that it told at least so often.
func (r *results) proof(often int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for key, c := range r.cells {
		lines = append(lines, strings.TrimSuffix(key[0]+"\t"+c.state+"\t"+key[1]+"\t"+c.reason, "\t"))
	}
	for key, said := range r.causes {
		lines = append(lines, key[0]+"\tcause\t"+key[1]+"\t"+said)
	}
	for key, n := range r.seen {
		if n < often {
			continue
		}
		lines = append(lines, key[0]+"\tevent\t"+key[1])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// print writes the table, reasons below it and the counts as the last line; also
// into the file that AMUX_TEST_REPORT names, and beside it as JSON.
func (r *results) print(w io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cells) == 0 {
		return nil
	}
	if path := os.Getenv("AMUX_TEST_REPORT"); path != "" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		w = io.MultiWriter(w, file)
	}
	type line struct {
		Agent    string `json:"agent"`
		Scenario string `json:"scenario"`
		State    string `json:"state"`
	}
	var lines []line
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "scenario")
	for _, a := range agents {
		fmt.Fprintf(table, "\t%s %s", a.id, tc.Versions[a.program])
	}
	fmt.Fprintln(table)
	count := map[string]int{}
	var reasons []string
	for _, s := range scenarios {
		fmt.Fprint(table, s.name)
		for _, a := range agents {
			c, ok := r.cells[[2]string{a.id, s.name}]
			switch {
			case ok:
			case chosen.unchanged(a.id):
				c.state = "unchanged"
			default:
				c.state = "not run"
			}
			count[c.state]++
			lines = append(lines, line{a.id, s.name, c.state})
			if c.reason != "" {
				reasons = append(reasons, fmt.Sprintf("n.a. %s %s: %s", a.id, s.name, c.reason))
			}
			fmt.Fprintf(table, "\t%s", c.state)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "minutes of them all")
	for _, a := range agents {
		fmt.Fprintf(table, "\t%.1f", r.took(a.id).Minutes())
	}
	fmt.Fprintln(table)
	table.Flush()
	slices.Sort(reasons)
	for _, reason := range reasons {
		fmt.Fprintln(w, reason)
	}
	if path := os.Getenv("AMUX_TEST_REPORT"); path != "" {
		data, err := json.Marshal(lines)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".json", data, 0o644); err != nil {
			return err
		}
	}
	chosen.print(w)
	counts := summary(count["passed"], count["failed"], count["n.a."], count["not run"])
	if n := count["unchanged"]; n > 0 {
		counts += fmt.Sprintf(", %d not run again for agents that are unchanged since their proof", n)
	}
	_, err := fmt.Fprintln(w, counts)
	return err
}

// took is how long an agent's scenarios took, one after the other; several run at a time.
func (r *results) took(agent string) (sum time.Duration) {
	for key, c := range r.cells {
		if key[0] == agent {
			sum += c.took
		}
	}
	return sum
}

func summary(passed, failed, na, skipped int) string {
	return fmt.Sprintf("test/real: %d passed, %d failed, %d n.a., %d skipped", passed, failed, na, skipped)
}
