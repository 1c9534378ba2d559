//go:build unix

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/sim"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
)

// check compares what is on the disk with the promises.
func (s *simulation) check() {
	for _, run := range s.runs {
		run.mu.Lock()
		s.checkRun(run)
		run.mu.Unlock()
	}
}

// recordedRun is what the record of a run says.
type recordedRun struct {
	lines  []string            // of events.jsonl
	end    *pluginapi.RunEnd   // nil if there is none
	said   map[int]string      // what the agent printed on stdout, by spawn
	inputs map[int][]string    // that the agent is told of, by spawn
	by     map[string][]string // who answered a question
	texts  []string            // of prompts
	budget int                 // how often one was said to be spent
	ends   int                 // how often the agent was told to end because of that
	damage bool
	fault  *journal.Fault
}

func (s *simulation) checkRun(run *simulatedRun) {
	fail := func(format string, args ...any) {
		s.problem("run "+run.id+": "+format, args...)
	}
	dir := store.New(s.Disk() + "/config").Run(run.id)
	if dir.Active() {
		fail("it does not end")
		return
	}
	if _, err := os.Stat(dir.Path("run.json")); err != nil {
		if run.started && !s.cut {
			fail("it was started, and has no record")
		}
		return
	}
	rec := &recordedRun{said: map[int]string{}, inputs: map[int][]string{}, by: map[string][]string{}}
	s.checkEvents(run, dir, rec, fail)
	s.checkJournal(run, dir, rec, fail)
	if rec.end == nil {
		return
	}
	s.checkBudget(run, rec, fail)
	s.checkLeft(dir, rec, fail)
	whole := rec.end.State != engine.Lost && rec.end.Code != pluginapi.CodeDiskFull && rec.end.Reason != "plugin" && rec.end.Reason != "abandoned" && !rec.damage && !s.cut
	if !s.cut {
		s.checkOutput(run, rec, whole, fail)
		s.checkInputs(run, rec, fail)
	}
	for _, a := range s.Agents() {
		if a.Run == run.id && a.Alive() {
			fail("a process has outlived it")
		}
	}
	if run.result != nil && run.result.End.Reason != "" && run.result.State != rec.end.State && !s.cut && !s.filled {
		fail("Wait said %s, and the record %s", run.result.State, rec.end.State)
	}
	if !rec.damage {
		s.checkReplay(run, rec, fail)
	}
}

// checkEvents: numbers without gaps, transitions that follow each other, one run_end at
// the end, and what was seen is what is there.
func (s *simulation) checkEvents(run *simulatedRun, dir *store.Run, rec *recordedRun, fail func(string, ...any)) {
	data, err := os.ReadFile(dir.Path("events.jsonl"))
	if err != nil {
		if !s.cut {
			fail("%v", err)
		}
		return
	}
	if now := string(data); run.events != "" && run.spec.Sync != SyncOff && now != run.events {
		fail("the events have changed since Wait returned, from %d bytes to %d", len(run.events), len(now))
	}
	state := ""
	asked := map[string]int{} // 1: a question, 2: it has a preview
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		if s.World.Trace != nil {
			s.World.Trace(fmt.Sprintf("event %.200s", line))
		}
		e, err := parseEvent(line)
		if err != nil {
			if rec.damage = true; !s.cut { // else it was not on the disk yet: see Wait below
				fail("event %d: %v", i+1, err)
			}
			return
		}
		rec.lines = append(rec.lines, string(line))
		if e.Seq != uint64(i+1) {
			fail("event %d has the number %d", i+1, e.Seq)
			return
		}
		if rec.end != nil {
			fail("%s follows run_end", e.Type)
			return
		}
		switch e.Type {
		case "run_state":
			var change pluginapi.RunState
			_ = e.Decode(&change)
			if change.From != state || engine.Terminal(state) {
				if !rec.damage {
					fail("a transition from %q to %q follows one to %q", change.From, change.To, state)
				}
			}
			state = change.To
		case "approval_request", "approval_preview":
			var of pluginapi.ApprovalPreview
			_ = e.Decode(&of)
			if asked[of.InteractionID]++; (asked[of.InteractionID] == 1) != (e.Type == "approval_request") || asked[of.InteractionID] > 2 {
				fail("%s number %d is about %s", e.Type, asked[of.InteractionID], of.InteractionID)
			}
			if e.Type == "approval_preview" {
				s.Count("preview")
				if of.Diff == "" || of.Path != "no-such-file" {
					fail("the preview of %s is %s", of.InteractionID, line)
				}
			}
		case "run_end":
			rec.end = &pluginapi.RunEnd{}
			_ = e.Decode(rec.end)
		case "error":
			var failure pluginapi.ErrorEvent
			_ = e.Decode(&failure)
			rec.damage = rec.damage || failure.Code == pluginapi.CodeRecordDamaged
		}
	}
	if rec.end == nil {
		fail("it has no run_end")
		return
	}
	if rec.end.State != state {
		fail("it is %q, and its run_end says %q", state, rec.end.State)
	}
	if !s.cut || run.spec.Sync == SyncAlways {
		live := run.live
		if s.cut {
			live = run.synced
		}
		for seq, line := range live {
			if seq > uint64(len(rec.lines)) || rec.lines[seq-1] != line {
				now := ""
				if seq <= uint64(len(rec.lines)) {
					now = rec.lines[seq-1]
				}
				fail("event %d was seen as\n%s\nand is now\n%s", seq, line, now)
				return
			}
		}
	}
}

// checkJournal reads the journal.
func (s *simulation) checkJournal(run *simulatedRun, dir *store.Run, rec *recordedRun, fail func(string, ...any)) {
	src, err := record.Open(dir.Path("journal"))
	if err != nil {
		rec.damage = true
		if !s.cut || run.journal != nil && run.spec.Sync != SyncOff {
			fail("%v", err)
		}
		return
	}
	defer src.Close()
	if now := make([]byte, src.Bytes); run.journal != nil && run.spec.Sync != SyncOff {
		if _, err := src.ReadAt(now, 0); err != nil || !bytes.Equal(now, run.journal) {
			fail("its journal was packed, and has %d bytes now, of %d: %v", len(now), len(run.journal), err)
		}
	}
	modes := []ApproveMode{run.spec.Approve}
	reader, err := journal.NewReader(src)
	if err != nil {
		if rec.damage = true; !s.cut || run.spec.Sync != SyncOff {
			fail("journal: %v", err)
		}
		return
	}
	spawn := 0
	stdout := map[int][]byte{}
	for {
		record, err := reader.Next(src.Committed())
		if err != nil {
			if !s.cut && reader.Offset() != src.Committed() {
				fail("journal: %v", err)
			}
			break
		}
		if s.World.Trace != nil {
			s.World.Trace(fmt.Sprintf("journal %s %d %.150q", record.Time.Format("05.000000"), record.Kind, record.Payload))
		}
		switch record.Kind {
		case journal.KindSpawned:
			var spawned journal.Spawned
			_ = record.Decode(&spawned)
			spawn = spawned.Spawn
		case journal.KindStdout:
			stdout[spawn] = append(stdout[spawn], record.Payload...)
		case journal.KindDamage:
			if rec.damage = true; !s.cut {
				fail("its journal is damaged, and no power was cut: %s", record.Payload)
			}
		case journal.KindFault:
			rec.fault = &journal.Fault{}
			_ = record.Decode(rec.fault)
		case journal.KindBudget:
			rec.budget++
			s.Count("budget")
		case journal.KindTimeout:
			var timeout journal.Timeout
			if _ = record.Decode(&timeout); timeout.Kind == "budget" {
				rec.ends++
			}
		case journal.KindRetry:
			s.Count("retry")
		case journal.KindTimer:
			var timer journal.Timer
			_ = record.Decode(&timer)
			rec.inputs[spawn] = append(rec.inputs[spawn], "timer "+timer.ID)
		case journal.KindInput:
			var in journal.Input
			_ = record.Decode(&in)
			switch in.Kind {
			case "interrupt":
				rec.ends++
			case "prompt":
				rec.texts = append(rec.texts, in.Text)
				rec.inputs[spawn] = append(rec.inputs[spawn], "prompt "+in.ID)
			case "set_approve":
				modes = append(modes, ApproveMode(in.Text))
			case "approve", "deny":
				if in.By == "policy" && in.Kind == "approve" { // the simulated agent has no rules
					if !slices.Contains(modes, ApproveAuto) {
						fail("the host approves %s, and no mode of %q does", in.ID, modes)
					}
					if modes[0] != ApproveAuto {
						s.Count("approved by a mode that was changed")
					}
				}
				rec.by[in.ID] = append(rec.by[in.ID], in.By)
				rec.inputs[spawn] = append(rec.inputs[spawn], in.Kind+" "+in.ID)
			}
		}
	}
	for spawn, data := range stdout {
		rec.said[spawn] = string(data)
	}
}

// checkLeft demands that what a run has left at another place is here, or a beginning of it if
// its end could not be fetched, or if there is no room for it.
func (s *simulation) checkLeft(dir *store.Run, rec *recordedRun, fail func(string, ...any)) {
	want := sim.LeftAfar(dir.ID)
	left, err := os.ReadFile(dir.Path(shim.LeftName))
	if err == nil && !bytes.HasPrefix(want, left) && !s.cut {
		fail("what it left at its place is not what is here")
	}
	exit, _ := os.ReadFile(dir.Path("exit"))
	unreached := rec.damage || s.cut || s.filled || bytes.Contains(exit, []byte(journal.ReasonCutOff)) || bytes.Contains(exit, []byte(journal.ReasonPlaceGone))
	if _, err := os.Stat(dir.Path("place-left.json")); err == nil && !unreached && rec.end.State != engine.Lost && len(left) != len(want) {
		fail("of what it left at its place %d bytes are here, of %d", len(left), len(want))
	}
}

// checkBudget: a budget that is spent ends the run, once, whoever dies meanwhile.
func (s *simulation) checkBudget(run *simulatedRun, rec *recordedRun, fail func(string, ...any)) {
	if rec.budget > 1 || rec.ends > 2 { // the interrupt, and the end of the time for it
		fail("its budget was spent %d times, and %d inputs ended it", rec.budget, rec.ends)
	}
	if rec.budget == 0 {
		if rec.end.Reason == ReasonBudget && !s.cut && !s.filled { // which take the record, and leave the end
			fail("it ended of a budget that no record tells of")
		}
		return
	}
	switch rec.end.Reason {
	case ReasonBudget, "lost", "plugin", "disk_full", "abandoned", "damaged", "host_gone":
	case "completed", "agent", "crash":
		if run.spec.Conversation {
			fail("its budget was spent, and it ended as %s (%s)", rec.end.State, rec.end.Reason)
		}
	default:
		fail("its budget was spent, and it ended as %s (%s)", rec.end.State, rec.end.Reason)
	}
}

// plainLines are the lines of an output, without what cutting it into lines takes away.
func plainLines(text string) string {
	var kept []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", ""), "\n") {
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n")
}

// printed is what events say that the agent has printed.
func printed(events []string) string {
	var deltas []string
	for _, line := range events {
		if !record.IsType([]byte(line), "text_delta") {
			continue
		}
		var e struct {
			Delta string `json:"delta"`
		}
		_ = json.Unmarshal([]byte(line), &e)
		deltas = append(deltas, e.Delta)
	}
	return strings.ReplaceAll(joined(deltas), "\r", "")
}

// checkOutput: every byte that an agent wrote is in the events once and in order, or the
// run is lost, and what is there is a prefix.
func (s *simulation) checkOutput(run *simulatedRun, rec *recordedRun, whole bool, fail func(string, ...any)) {
	var wrote []string
	for _, a := range s.Agents() {
		if a.Run != run.id || !a.Leader() {
			continue
		}
		all, there := string(a.Wrote(0)), rec.said[a.Spawn]
		if !strings.HasPrefix(all, there) {
			fail("the journal has of spawn %d what the agent did not write: %.200q", a.Spawn, there)
			return
		}
		wrote = append(wrote, plainLines(all))
	}
	events, agent := printed(rec.lines), joined(wrote)
	switch {
	case whole && events != agent:
		fail("it is %s (%s), and of %d bytes of the agent %d are in the events", rec.end.State, rec.end.Reason, len(agent), len(events))
	case !whole && len(wrote) < 2 && !strings.HasPrefix(agent, events):
		fail("it is %s (%s), and its events are no prefix of what the agent wrote: %d of %d bytes", rec.end.State, rec.end.Reason, len(events), len(agent))
	}
}

// checkInputs: stdin has each input once and in order, each question one answer, and
// what was accepted is recorded.
func (s *simulation) checkInputs(run *simulatedRun, rec *recordedRun, fail func(string, ...any)) {
	for _, a := range s.Agents() {
		if a.Run != run.id || !a.Leader() {
			continue
		}
		heard, want := a.Heard(), rec.inputs[a.Spawn]
		if len(heard) > len(want) || !slices.Equal(heard, want[:len(heard)]) {
			fail("spawn %d has read %q, and the journal has %q", a.Spawn, heard, want)
		}
	}
	for id, by := range rec.by {
		if len(by) > 1 {
			fail("question %s has %d answers: %q", id, len(by), by)
		}
	}
	for id, times := range run.answered {
		if times > 1 {
			fail("%d people were told that their answer to %s counts", times, id)
		}
		if !slices.Contains(rec.by[id], "user") {
			fail("an answer to %s was accepted, and is not recorded", id)
		}
	}
	seen := map[string]bool{}
	for _, text := range rec.texts {
		if seen[text] && strings.HasPrefix(text, "prompt ") { // the first prompt comes again with each attempt
			fail("%q was sent once, and is recorded twice", text)
		}
		seen[text] = true
	}
	for _, text := range run.sent {
		if !slices.Contains(rec.texts, text) {
			fail("%q was accepted, and is not recorded", text)
		}
	}
}

// checkReplay: a replay makes the same events. Those that no plugin could make at the end of
// the run it makes as well.
func (s *simulation) checkReplay(run *simulatedRun, rec *recordedRun, fail func(string, ...any)) {
	s.host.do(func() {
		var again bytes.Buffer
		if err := s.host.Replay(context.Background(), run.id, &again); err != nil {
			if !s.cut {
				fail("replay: %v", err)
			}
			return
		}
		lines := strings.Split(strings.TrimSuffix(again.String(), "\n"), "\n")
		if rec.fault != nil && rec.fault.Behind {
			if now, was := printed(lines), printed(rec.lines); !strings.HasPrefix(now, was) {
				fail("the agent's output was\n%.300s\nand is in a replay\n%.300s", was, now)
			}
			return
		}
		for i := range max(len(lines), len(rec.lines)) {
			was, is := "", ""
			if i < len(rec.lines) {
				was = rec.lines[i]
			}
			if i < len(lines) {
				is = lines[i]
			}
			if was != is {
				fail("event %d was\n%.300s\nand is in a replay\n%.300s", i+1, was, is)
				return
			}
		}
	})
}
