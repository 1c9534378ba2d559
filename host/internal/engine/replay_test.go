package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// settling is an ending whose shim has left something beside the journal.
type settling struct {
	*ending
	settled Settled
}

func (s settling) Settle(bool) (Settled, error) { return s.settled, nil }

// conclude writes a journal and has a host conclude it that finds events in the log
// already. It returns the events, and those of a replay.
func conclude(t *testing.T, records []any, logged int, settled Settled) (events, again string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	writer, err := journal.OpenWriter(path, func() time.Time { now = now.Add(time.Second); return now })
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for _, record := range records {
		kind := map[string]journal.Kind{"State": journal.KindState, "Plan": journal.KindPlan, "Spawned": journal.KindSpawned, "Input": journal.KindInput, "Retry": journal.KindRetry}[fmt.Sprintf("%T", record)[len("journal."):]]
		if err := writer.Append(kind, journal.Encode(record)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for n := range 2 {
		log, err := eventlog.Open(fmt.Sprintf("%s-%d.jsonl", path, n), "01J", "echo", true)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		src := &growing{File: file, rand: newEcho(1, 0).rand, size: writer.Size(), whole: writer.Size()}
		config := Config{Journal: src, Log: log, Limits: Limits{Progress: time.Minute, Volume: 1 << 20}, Start: &pb.Start{Agent: "echo"}}
		if n == 0 {
			for range logged {
				if err := log.Add("debug", now, []byte(`{"level":"info"}`)); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Commit(nil); err != nil {
				t.Fatal(err)
			}
			config.Effects = settling{&ending{journal: src, writer: writer}, settled}
		} else {
			src.released = true
		}
		e, adapter := New(config), newEcho(1, 0)
		if err := e.Run(t.Context(), Reading{Conversation: adapter, Leave: adapter.leave}); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(fmt.Sprintf("%s-%d.jsonl", path, n))
		events, again = again, string(text)
	}
	return events, again
}

var started = []any{
	journal.State{To: Queued}, journal.State{From: Queued, To: Starting}, journal.Plan{Spawn: 1, Attempt: 1, SessionID: "s"},
}

// What the end was made of beside the journal is in the record of the end.
func TestReplayKnowsWhatTheEndWasMadeOf(t *testing.T) {
	running := append(started[:len(started):len(started)], journal.Spawned{Spawn: 1, PID: 7}, journal.State{From: Starting, To: Running})
	for name, c := range map[string]struct {
		records []any
		settled Settled
		want    string
	}{
		"exit on a full disk":          {running, Settled{Exit: &journal.Exit{Spawn: 1, Code: -1, Signal: "SIGKILL", Reason: journal.ReasonDiskFull}}, `"signal":"SIGKILL"`},
		"files that may not grow":      {running, Settled{Exit: &journal.Exit{Spawn: 1, Reason: journal.ReasonDiskFull, Limit: true}}, `ulimit -f`},
		"full disk before the agent":   {started, Settled{Started: true, Exit: &journal.Exit{Reason: journal.ReasonDiskFull}}, `"state":"failed"`},
		"shim that died at the start":  {started, Settled{Started: true}, `"type":"session_end"`},
		"shim that died in the middle": {running, Settled{Started: true}, `"state":"lost"`},
	} {
		t.Run(name, func(t *testing.T) {
			events, again := conclude(t, c.records, 0, c.settled)
			if events != again || !bytes.Contains([]byte(events), []byte(c.want)) {
				t.Errorf("the events were\n%s\nand are in a replay\n%s", events, again)
			}
		})
	}
}

// A shim that is to start an agent records that it does not. If it has not, it was killed,
// and what the agent may have done is lost.
func TestAgentThatIsNotKnownToHaveStarted(t *testing.T) {
	gaveUp := journal.Input{Kind: "kill", By: "shim", Text: string(journal.ReasonHostGone)}
	for name, c := range map[string]struct {
		records []any
		want    string
	}{
		"plan and no more":            {started, `"state":"lost","reason":"lost","code":"LOST"`},
		"given up before it":          {append(started[:len(started):len(started)], gaveUp), `"code":"HOST_GONE","message":"the process that hosted the run ended before the agent was started"`},
		"no plan yet":                 {started[:2], `"code":"HOST_GONE","message":"the process that hosted the run ended before the agent was started"`},
		"given up before the attempt": {append(started[:len(started):len(started)], journal.Retry{Attempt: 2}, gaveUp), `ended before attempt 2 was started"`},
	} {
		t.Run(name, func(t *testing.T) {
			events, again := conclude(t, c.records, 0, Settled{})
			if events != again || !bytes.Contains([]byte(events), []byte(c.want)) {
				t.Errorf("the events were\n%s\nand are in a replay\n%s", events, again)
			}
		})
	}
}

// A power cut may cost the end of the journal and leave the events that were made of it.
// The end comes behind them.
func TestEventsAheadOfTheJournal(t *testing.T) {
	events, _ := conclude(t, started, 9, Settled{})
	lines := bytes.Split(bytes.TrimSpace([]byte(events)), []byte("\n"))
	if n := len(lines); n < 11 || !bytes.Contains(lines[9], []byte(`"RECORD_DAMAGED"`)) || !bytes.Contains(lines[n-1], []byte(`"type":"run_end"`)) {
		t.Errorf("the events are\n%s", events)
	}
}

// A host that waited for a full disk may record a transition that the next host has
// recorded too.
func TestTransitionOfAHostThatWasSuperseded(t *testing.T) {
	twice := journal.State{From: Starting, To: Running}
	events, _ := conclude(t, append(started[:len(started):len(started)], journal.Spawned{Spawn: 1, PID: 7}, twice, twice), 0, Settled{})
	if n := bytes.Count([]byte(events), []byte(`"to":"running"`)); n != 1 {
		t.Errorf("%d transitions to running in\n%s", n, events)
	}
}

// An agent may end before the host can record that it runs. Its run was running all the
// same: no run is completed that was not.
func TestAgentThatEndsAtOnce(t *testing.T) {
	records := append(started[:len(started):len(started)], journal.Spawned{Spawn: 1, PID: 7})
	events, again := conclude(t, records, 0, Settled{Exit: &journal.Exit{Spawn: 1}})
	running, completed := strings.Index(events, `"from":"starting","to":"running"`), strings.Index(events, `"from":"running","to":"completed"`)
	if events != again || running < 0 || completed < running {
		t.Errorf("the events were\n%s\nand are in a replay\n%s", events, again)
	}
}

// deaf is an ending that takes nothing until the shim has left.
type deaf struct {
	*ending
	left bool
}

func (d *deaf) Append(kind journal.Kind, record []byte) error {
	if !d.left {
		return os.ErrClosed
	}
	return d.ending.Append(kind, record)
}

func (d *deaf) Settle(lost bool) (Settled, error) {
	d.left = true
	settled, err := d.ending.Settle(lost)
	settled.Started = true
	return settled, err
}

func (*deaf) AwaitPrompt(bool) {}

// deafRun has a run of these records end that took nothing until its shim had left, and
// returns its events and all of its journal.
func deafRun(t *testing.T, read func(*growing, *deaf) Journal, records ...any) (events string, states []journal.State) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	writer, err := journal.OpenWriter(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := eventlog.Open(path+".jsonl", "01J", "echo", true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	src := &growing{File: file, rand: newEcho(1, 0).rand}
	effects := &deaf{ending: &ending{journal: src, writer: writer, late: []journal.State{{From: Running, To: Waiting}}}}
	kinds := []journal.Kind{journal.KindState, journal.KindState, journal.KindPlan, journal.KindSpawned, journal.KindExit}
	for i, record := range append(started[:len(started):len(started)], records...) {
		if err := effects.ending.Append(kinds[i], journal.Encode(record)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, adapter := New(Config{
		Journal: read(src, effects), Log: log, Limits: Limits{Progress: time.Minute, Volume: 1 << 20}, Start: &pb.Start{Agent: "echo"},
		Effects: effects, Policy: &Policy{}, State: Starting,
	}), newEcho(1, 0)
	if err := e.Run(ctx, Reading{Conversation: adapter, Leave: adapter.leave}); err != nil {
		t.Fatal(err)
	}
	reader, err := journal.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := reader.Next(writer.Size())
		if err != nil {
			break
		}
		var state journal.State
		if rec.Kind == journal.KindState && rec.Decode(&state) == nil {
			states = append(states, state)
		}
	}
	data, err := os.ReadFile(path + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(data), states
}

func asItIs(src *growing, _ *deaf) Journal { return src }

// A transition that is recorded because of the last that is read stands before the end.
func TestEndFollowsWhatWasRecordedLast(t *testing.T) {
	events, _ := deafRun(t, asItIs, journal.Spawned{Spawn: 1, PID: 7})
	for _, want := range []string{`"from":"starting","to":"running"`, `"from":"running","to":"lost"`} {
		if !strings.Contains(events, want) {
			t.Errorf("%s is not in\n%s", want, events)
		}
	}
}

// What the end is worked out from, beside the journal, is no reason to record anything
// behind it.
func TestNothingFollowsTheEnd(t *testing.T) {
	_, states := deafRun(t, asItIs)
	if last := states[len(states)-1]; last.From != Starting || last.To != Lost {
		t.Errorf("%+v", states)
	}
}

// Who finishes a run without its adapter tells what the host itself knows, once, behind the
// events that the log has.
func TestFinishWithoutAdapter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	record(t, path)
	logs := []string{
		"run_state", "run_state", "debug", "run_state", "turn_end", "user_message", "paused", "resumed", "paused",
		"resumed", "paused", "resumed", "paused", "resumed", "run_state", // the last is of a record that is lost
	}
	for _, logged := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, len(logs) - 1, len(logs)} {
		now := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
		copied := fmt.Sprintf("%s-%d", path, logged)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(copied, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		writer, err := journal.OpenWriter(copied, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		file, err := os.Open(copied)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		log, err := eventlog.Open(copied+".jsonl", "01J", "echo", true)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		var had []string // by a host that died
		for _, event := range logs[:logged] {
			had = append(had, event)
			if err := log.Add(event, now, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Commit(nil); err != nil {
			t.Fatal(err)
		}
		src := &growing{File: file, rand: newEcho(1, 0).rand, size: writer.Size(), whole: writer.Size()}
		e := New(Config{
			Journal: src, Log: log, Limits: Limits{Progress: time.Minute, Volume: 1 << 20}, Start: &pb.Start{Agent: "echo"},
			Effects: &ending{journal: src, writer: writer}, Logged: func(yield func(pluginapi.Type, []byte)) {
				for _, event := range had {
					yield(pluginapi.Type(event), []byte("{}"))
				}
			},
		})
		fault := journal.Fault{Code: "PLUGIN_CHANGED"}
		if err := e.Finish(t.Context(), &fault); err != nil {
			t.Fatal(err)
		}
		events, _ := os.ReadFile(copied + ".jsonl")
		if turns := fmt.Sprintf(`"turns":%d,`, min(1, logged/5)); !bytes.Contains(events, []byte(turns)) {
			t.Errorf("%d events in the log, and not %s:\n%s", logged, turns, events)
		}
		states, end := 4, `"state":"failed","reason":"plugin","code":"PLUGIN_CHANGED"`
		if logged == len(logs) {
			states, end = 5, `"state":"lost","reason":"damaged","code":"RECORD_DAMAGED"`
		}
		for event, want := range map[string]int{`"type":"run_state"`: states, `"type":"paused"`: 4, `"type":"resumed"`: 4, end: 1} {
			if n := bytes.Count(events, []byte(event)); n != want {
				t.Errorf("%d events in the log: %d times %s, want %d:\n%s", logged, n, event, want, events)
			}
		}
	}
}

// flooded is a journal that grows whenever it is looked at, until the shim has left.
type flooded struct {
	*growing
	effects *deaf
}

func (f *flooded) Committed() int64 {
	if !f.effects.left {
		_ = f.effects.ending.Append(journal.KindInput, journal.Encode(journal.Input{Kind: code.InputEnd}))
	}
	return f.growing.Committed()
}

// Whoever sends without a pause does not keep a run from its end.
func TestEndDespiteAFlood(t *testing.T) {
	flood := func(src *growing, effects *deaf) Journal { return &flooded{src, effects} }
	events, _ := deafRun(t, flood, journal.Spawned{Spawn: 1, PID: 7}, journal.Exit{Spawn: 1})
	if !strings.Contains(events, `"run_end"`) {
		t.Errorf("no end in\n%s", events[max(0, len(events)-1000):])
	}
}
