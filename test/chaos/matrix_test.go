//go:build linux

package chaos

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/test/agents"
)

const (
	matrixGrace   = 100 * time.Millisecond
	leftoverGrace = 500 * time.Millisecond // what is left by a leader that has exited is given; fixed in the shim
	goneBudget    = 50 * time.Millisecond  // from the end of the last grace to all gone
)

// ending is one way in which an agent ends.
type ending struct {
	name string
	// script is carried out after "leave KIND"; before precedes it.
	before, script string
	spec           func(*host.RunSpec)
	act            func(*host.Run) error // once the descendant is there
	deaf           bool                  // TERM has no effect on agent and descendants
	grace          time.Duration
	state          string
}

var endings = []ending{
	{name: "exits 0", script: "sleep 0.05\nexit 0", grace: leftoverGrace, state: "completed"},
	{name: "exits 1", script: "sleep 0.05\nexit 1", grace: leftoverGrace, state: "failed"},
	{name: "stopped", script: "sleep 1000", act: stop, grace: matrixGrace, state: "canceled"},
	{
		name: "timed out", script: "sleep 1000", grace: matrixGrace, state: "timed_out",
		spec: func(s *host.RunSpec) { s.Timeout = 500 * time.Millisecond },
	},
	{name: "ignores TERM", before: "ignore-term", script: "sleep 1000", act: stop, deaf: true, grace: matrixGrace, state: "canceled"},
	{name: "leader exits first", before: "ignore-term", script: "sleep 0.05\nexit 0", deaf: true, grace: leftoverGrace, state: "completed"},
	{name: "SIGSTOPped", script: "freeze\nsleep 1000", act: stop, grace: matrixGrace, state: "canceled"},
}

func stop(r *host.Run) error { return r.Stop(context.Background()) }

// kinds of descendants; chain is an endless setsid, fork, exit.
var kinds = []string{"child", "setsid", "daemon", "chain", "closed", "cleanenv"}

// However an agent ends, and whatever it leaves behind: nothing survives, and it
// is quick. Survivors are looked for in /proc, by the pids that the agent told and
// by the run's mark.
func TestKillMatrix(t *testing.T) {
	// Not beside other tests: it is about time.
	s := agents.NewStage(t, "matrix", "healthy")
	h := s.Host()
	var (
		mu    sync.Mutex
		took  = map[string][]time.Duration{}
		cells = make(chan struct{}, 4)
	)
	t.Run("cells", func(t *testing.T) {
		for _, e := range endings {
			for _, kind := range kinds {
				t.Run(e.name+"/"+kind, func(t *testing.T) {
					t.Parallel()
					for range agents.Times(3, 100) {
						func() {
							cells <- struct{}{}
							defer func() { <-cells }()
							latency := e.round(t, s, h, kind)
							mu.Lock()
							defer mu.Unlock()
							took[e.name+"/"+kind] = append(took[e.name+"/"+kind], latency)
						}()
						if t.Failed() {
							return
						}
					}
				})
			}
		}
	})
	var rows []string
	for _, e := range endings {
		rows = append(rows, e.name)
	}
	t.Log("\n" + latencies("from the end of the last grace to all gone", rows, took))
	checkMedian(t, took)
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// round is one run of one cell.
func (e ending) round(t *testing.T, s *agents.Stage, h *host.Host, kind string) time.Duration {
	t.Helper()
	script := []string{"leave " + kind, e.script}
	if e.before != "" {
		script = append([]string{e.before}, script...)
	}
	spec := host.RunSpec{Agent: "matrix", Prompt: strings.Join(script, "\n"), Limits: host.Limits{Grace: matrixGrace}}
	if e.spec != nil {
		e.spec(&spec)
	}
	r := s.Start(h, spec)
	var family []agents.Process
	tell := 0
	for event := range r.Events(context.Background(), 1) {
		_, rest, ok := strings.Cut(string(event.Raw), `"message":"pid `)
		if !ok {
			continue
		}
		words := strings.Fields(strings.TrimRight(rest, `"}`))
		if pid, err := strconv.Atoi(words[len(words)-1]); err != nil || pid == 0 {
			t.Errorf("what pid is that? %s", event.Raw)
		} else if p, ok := agents.ReadProcess(pid); ok && p.State != "Z" {
			family = append(family, p)
		}
		if tell++; tell == 2 {
			break
		}
	}
	if tell < 2 && e.state != "timed_out" { // on a slow machine the limit may come first
		t.Errorf("the agent told %d pids", tell)
	}
	if e.act != nil {
		if e.name == "SIGSTOPped" {
			agents.Eventually(t, time.Minute, "the agent has stopped itself", func() bool {
				p, ok := agents.ReadProcess(family[0].PID)
				return ok && p.State == "T"
			})
		}
		if err := e.act(r); err != nil {
			t.Error(err)
		}
	}
	gone := make(chan time.Time, 1)
	go func() {
		var last time.Time
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && slices.ContainsFunc(family, agents.Process.Alive); {
			time.Sleep(time.Millisecond)
			last = time.Now()
		}
		gone <- last
	}()
	end, _ := r.Wait(context.Background())
	if end.State != e.state {
		t.Errorf("the run ended %s, %v", end.State, end.Err)
	}
	over := <-gone
	survivors := agents.OfRun(r.ID())
	for _, p := range family {
		if p.Alive() {
			survivors = append(survivors, p)
		}
	}
	for _, p := range survivors {
		t.Errorf("%s/%s: survived: %v", e.name, kind, p)
	}
	for _, path := range []string{filepath.Join(s.Temp, "agent-mux-"+r.ID()), filepath.Join(s.Runtime, strings.ToLower(r.ID())+".sock")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	asked, exit := killTimes(t, r.Dir())
	if over.IsZero() || kind == "chain" {
		over = exit // nobody was there to look at, or nobody for long: the shim's word
	}
	latency := over.Sub(asked)
	if e.deaf || kind == "chain" && latency > e.grace {
		latency -= e.grace
	}
	return max(latency, 0)
}

// killTimes are when the tree was asked to end, and when the shim saw it gone.
func killTimes(t *testing.T, dir string) (asked, gone time.Time) {
	t.Helper()
	for _, rec := range records(t, dir) {
		switch rec.Kind {
		case journal.KindSignal:
			if asked.IsZero() {
				asked = rec.Time
			}
		case journal.KindExit:
			gone = rec.Time
		}
	}
	if asked.IsZero() {
		asked = gone
	}
	return asked, gone
}

// records are those of a run's journal.
func records(t *testing.T, dir string) []journal.Record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := journal.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var all []journal.Record
	for {
		rec, err := reader.Next(int64(len(data)))
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		rec.Payload = bytes.Clone(rec.Payload)
		all = append(all, rec)
	}
}

// latencies is the table of a matrix.
func latencies(what string, rows []string, took map[string][]time.Duration) string {
	var table strings.Builder
	fmt.Fprintf(&table, "%s, ms: median (max); budget %v\n%-20s", what, goneBudget, "")
	for _, kind := range kinds {
		fmt.Fprintf(&table, "%16s", kind)
	}
	var all []time.Duration
	for _, row := range rows {
		fmt.Fprintf(&table, "\n%-20s", row)
		for _, kind := range kinds {
			cell := took[row+"/"+kind]
			all = append(all, cell...)
			fmt.Fprintf(&table, "%16s", medianMax(cell))
		}
	}
	fmt.Fprintf(&table, "\n%-20s%16s  of %d runs", "all", medianMax(all), len(all))
	return table.String()
}

// checkMedian compares all rounds with the budget. One slow round is the machine's;
// when most rounds are slow it is ours.
func checkMedian(t *testing.T, took map[string][]time.Duration) {
	t.Helper()
	var all []time.Duration
	for _, cell := range took {
		all = append(all, cell...)
	}
	slices.Sort(all)
	if len(all) > 0 && all[len(all)/2] > goneBudget {
		t.Errorf("median of %v until all were gone; the budget is %v", all[len(all)/2], goneBudget)
	}
}

func medianMax(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare[time.Duration])
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%.1f (%.1f)", ms(sorted[len(sorted)/2]), ms(sorted[len(sorted)-1]))
}
