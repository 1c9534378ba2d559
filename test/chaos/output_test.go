//go:build linux

package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// deltas are the texts of the run's text_delta events.
func deltas(t *testing.T, events []byte) []string {
	t.Helper()
	var all []string
	for line := range bytes.Lines(events) {
		if !bytes.HasPrefix(line, []byte(`{"type":"text_delta"`)) {
			continue
		}
		var e struct{ Delta string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("event that is not JSON: %v: %.200q", err, line)
		}
		all = append(all, e.Delta)
	}
	return all
}

// output runs a script to its end and returns its events.
func output(t *testing.T, script string) (*host.Run, []byte) {
	t.Helper()
	s := agents.NewStage(t, "speaker", "healthy")
	r := s.Start(s.Host(), host.RunSpec{Agent: "speaker", Prompt: script})
	got := events(t, r)
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("the run ended %s, %v", end.State, end.Err)
	}
	return r, got
}

// stream is what the agent wrote, as the journal has it.
func stream(t *testing.T, r *host.Run, kind journal.Kind) []byte {
	t.Helper()
	var all []byte
	for _, rec := range records(t, r.Dir()) {
		if rec.Kind == kind {
			all = append(all, rec.Payload...)
		}
	}
	return all
}

func TestLineOf64MiB(t *testing.T) {
	const size = 64 << 20
	_, got := output(t, fmt.Sprintf("say before\nbig %d\nsay after", size))
	texts := deltas(t, got)
	if len(texts) != 3 || texts[0] != "before\n" || texts[2] != "after\n" {
		t.Fatalf("%d texts", len(texts))
	}
	if want := strings.Repeat("0123456789abcdef", size/16)[:size-2] + "\n"; texts[1] != want {
		t.Errorf("the line has %d bytes or others than were written", len(texts[1]))
	}
}

// A line that is too long is one log event that says where it is.
func TestLineOver128MiB(t *testing.T) {
	const size = pluginapi.MaxLine + 12345
	r, got := output(t, fmt.Sprintf("say before\nbig %d\nsay after", size))
	if texts := deltas(t, got); len(texts) != 2 || texts[0] != "before\n" || texts[1] != "after\n" {
		t.Errorf("texts: %.300q", texts)
	}
	if bytes.Contains(got, []byte("0123456789abcdef")) {
		t.Error("the adapter has seen a part of the line")
	}
	said := stream(t, r, journal.KindStdout)
	var logs []pluginapi.Log
	for line := range bytes.Lines(got) {
		if bytes.HasPrefix(line, []byte(`{"type":"log"`)) {
			var l pluginapi.Log
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			logs = append(logs, l)
		}
	}
	if len(logs) != 1 || logs[0].Offset == nil || logs[0].Length == nil {
		t.Fatalf("log events: %+v", logs)
	}
	offset, length := *logs[0].Offset, *logs[0].Length
	if want := int64(bytes.Index(said, []byte("t 0123456789abcdef"))); offset != want || length != size {
		t.Errorf("offset %d, length %d; want %d, %d", offset, length, want, size)
	}
	if end := offset + length; said[end] != '\n' || said[offset-1] != '\n' {
		t.Error("offset and length are not those of a line")
	}
}

func TestBytesOfAllKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         []string
		raw          string
	}{
		{"invalid UTF-8", `out t bad \xff\xc3( \xed\xa0\x80 end\n`, []string{"bad \ufffd\ufffd( \ufffd\ufffd\ufffd end\n"}, "t bad \xff\xc3( \xed\xa0\x80 end\n"},
		{"torn UTF-8", "out t \\xe2\\x82\nsleep 0.05\nout \\xac one\\n", []string{"€ one\n"}, "t \xe2\x82\xac one\n"},
		{"NUL", `out t nul \x00 here\n`, []string{"nul \x00 here\n"}, "t nul \x00 here\n"},
		{"CRLF", `out t one\r\nt two\r\n\r\nt \r three\r\n`, []string{"one\n", "two\n", "\r three\n"}, "\r\n\r\nt \r three\r\n"},
		{"no newline at the end", "out t first\\nt last\nexit 0", []string{"first\n", "last\n"}, "t last"},
		{"control characters", `out t \x1b[31m\x07"\\\u2028\n`, []string{"\x1b[31m\a\"\\\u2028\n"}, "t \x1b[31m\a\"\\\u2028\n"},
		{"empty lines", `out \n\n\nt x\n\n`, []string{"x\n"}, "\n\n\nt x\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, got := output(t, c.script)
			if texts := deltas(t, got); strings.Join(texts, "|") != strings.Join(c.want, "|") {
				t.Errorf("texts %q, want %q", texts, c.want)
			}
			if raw := stream(t, r, journal.KindStdout); !bytes.Contains(raw, []byte(c.raw)) {
				t.Errorf("the journal has other bytes: %q", raw)
			}
			for line := range bytes.Lines(got) {
				if !json.Valid(line) {
					t.Errorf("not JSON: %q", line)
				}
			}
		})
	}
}

// A prompt of 5 MB reaches the agent byte for byte.
func TestLongPrompt(t *testing.T) {
	t.Parallel()
	prompt := "hash\n" + strings.Repeat("# \"quoted\" \\n € 🙂 \t\u2028 \x7f tail\r\n", 5<<20/35)
	prompt = prompt[:strings.LastIndexByte(prompt, '\n')]
	s := agents.NewStage(t, "reader", "healthy")
	r := s.Start(s.Host(), host.RunSpec{Agent: "reader", Prompt: prompt})
	texts := deltas(t, events(t, r))
	if want := fmt.Sprintf("%d %x\n", len(prompt), sha256.Sum256([]byte(prompt))); len(texts) != 1 || texts[0] != want {
		t.Errorf("the agent got %q, want %q", texts, want)
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" || len(prompt) < 5_000_000 {
		t.Errorf("%s, %v, %d bytes", end.State, end.Err, len(prompt))
	}
}

// Whatever a prompt is made of, it reaches the agent as it is, or is refused before
// anything was done.
func TestPromptsOfAnyBytes(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "reader", "healthy")
	h := s.Host()
	const MiB = 1 << 20
	fill := func(unit string, size int) string {
		const begin = "hash\n# "
		return begin + strings.Repeat(unit, (size-len(begin))/len(unit))
	}
	prompts := []string{
		fill("\x01", 15*MiB/6), fill("x", 8*MiB), fill("<&>", 8*MiB), fill("\u2028", 8*MiB), fill("🙂", 8*MiB), fill("\x7f\u0085\ufffd", 8*MiB),
		fill("\b\f\v\x1b", 15*MiB/6), fill(`"\`, 15*MiB/2), fill("\r\n\t", 15*MiB/2),
	}
	r := s.Start(h, host.RunSpec{Agent: "reader", Conversation: true, Prompt: prompts[0]})
	turns := 0
	for e, err := range r.Events(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != "turn_end" {
			continue
		}
		if turns++; turns == len(prompts) {
			break
		}
		if err := r.Send(context.Background(), prompts[turns]); err != nil {
			t.Fatalf("%q…: %v", prompts[turns][:20], err)
		}
	}
	for what, prompt := range map[string]string{
		"too long": fill("x", 8*MiB+20), "too long when escaped": fill("\x01", 3*MiB), "no UTF-8": "caf\xe9", "NUL": "a\x00b", "nothing": "",
	} {
		_, err := h.Start(context.Background(), host.RunSpec{Agent: "reader", Prompt: prompt})
		for _, err := range []error{err, r.Send(context.Background(), prompt)} {
			if !errors.Is(err, pluginapi.CodeValidation) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
				t.Errorf("%s: %.300v", what, err)
			}
		}
	}
	if err := r.End(context.Background()); err != nil {
		t.Error(err)
	}
	got := strings.Join(deltas(t, events(t, r)), "")
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	want := ""
	for _, prompt := range prompts {
		want += fmt.Sprintf("%d %x\n", len(prompt), sha256.Sum256([]byte(prompt)))
	}
	if got != want {
		t.Errorf("the agent got\n%swant\n%s", got, want)
	}
}

// An agent that reads nothing cannot be told everything, and the run says so.
func TestAgentThatNeverReads(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "deaf", "healthy")
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "deaf", Prompt: "deaf\nleave setsid\nsleep 1000", Conversation: true})
	prompt := strings.Repeat("x", 5<<20)
	sent := make(chan error, 1)
	go func() {
		for range 8 {
			if err := r.Send(context.Background(), prompt); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	ended := make(chan host.Result, 1)
	go func() {
		end, _ := r.Wait(context.Background())
		ended <- end
	}()
	select {
	case end := <-ended:
		if end.State != "failed" || end.End.Code != pluginapi.CodeStdinNotAvailable {
			t.Errorf("%s, %v", end.State, end.Err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the run hangs")
	}
	if err := <-sent; err != nil && !errors.Is(err, pluginapi.CodeRunNotActive) {
		t.Errorf("send: %v", err)
	}
	if left := agents.OfRun(r.ID()); len(left) > 0 {
		t.Errorf("survived: %v", left)
	}
	same(t, "replay", replay(t, h, r.ID()), events(t, r))
}

// Events have stdout and stderr in the order in which they were read, which is
// that of the journal.
func TestStreamsInReadOrder(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for i := range 30 {
		fmt.Fprintf(&script, "out o%d\\n\nsleep 0.002\nerr e%d\\n\nsleep 0.002\n", i, i)
		if i%10 == 0 {
			fmt.Fprintf(&script, "out torn \nsleep 0.002\nerr between%d\\n\nsleep 0.002\nout line%d\\n\n", i, i)
		}
	}
	r, got := output(t, script.String())
	// What the journal says: a line is read when its end is.
	var want []string
	pending := map[journal.Kind]string{}
	for _, rec := range records(t, r.Dir()) {
		if rec.Kind != journal.KindStdout && rec.Kind != journal.KindStderr {
			continue
		}
		lines := strings.SplitAfter(pending[rec.Kind]+string(rec.Payload), "\n")
		for _, line := range lines[:len(lines)-1] {
			want = append(want, strings.TrimSuffix(line, "\n"))
		}
		pending[rec.Kind] = lines[len(lines)-1]
	}
	var have []string
	for line := range bytes.Lines(got) {
		var e struct{ Type, Message, Line string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "log" {
			have = append(have, e.Line+e.Message)
		}
	}
	var lines []string
	for _, line := range want {
		if strings.HasPrefix(line, "o") || strings.HasPrefix(line, "e") && line != "end" || strings.HasPrefix(line, "torn") || strings.HasPrefix(line, "between") {
			lines = append(lines, line)
		}
	}
	if d := agents.Difference(strings.Join(have, "\n"), strings.Join(lines, "\n")); d != "" || len(have) != 66 {
		t.Errorf("%d lines; %s", len(have), d)
	}
}

// Consumers of every kind get the same events, and none before OnEvent.
func TestConsumersOf100000Lines(t *testing.T) {
	const lines = 100_000
	s := agents.NewStage(t, "talker", "healthy")
	h := s.Host()
	var seen atomic.Uint64
	var inOrder sync.Once
	r := s.Start(h, host.RunSpec{
		Agent: "talker", Prompt: fmt.Sprintf("lines %d\nusage 1 2", lines),
		OnEvent: func(e host.Event) {
			if e.Seq != seen.Load()+1 {
				inOrder.Do(func() { t.Errorf("OnEvent saw event %d after %d", e.Seq, seen.Load()) })
			}
			seen.Store(e.Seq)
		},
	})
	// take reads events by the iterator and compares each with what OnEvent got.
	take := func(from uint64, pause func(n int)) []byte {
		var all bytes.Buffer
		n := 0
		for e, err := range r.Events(context.Background(), from) {
			if err != nil {
				t.Error(err)
				break
			}
			if e.Seq > seen.Load() {
				t.Errorf("a consumer saw event %d, OnEvent had seen %d", e.Seq, seen.Load())
				break
			}
			all.Write(e.Raw)
			all.WriteByte('\n')
			n++
			if pause != nil {
				pause(n)
			}
		}
		return all.Bytes()
	}
	const middle = lines / 2
	got := map[string][]byte{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	consumer := func(name string, from uint64, pause func(int)) {
		wg.Go(func() {
			all := take(from, pause)
			mu.Lock()
			got[name] = all
			mu.Unlock()
		})
	}
	consumer("from the start", 1, nil)
	consumer("stalled till the end", 1, func(n int) {
		if n == 3 {
			r.Wait(context.Background())
		}
	})
	consumer("from the middle", middle, nil)
	quit := make(chan struct{})
	wg.Go(func() { // one that leaves
		defer close(quit)
		for e := range r.Events(context.Background(), 1) {
			if e.Seq == 10 {
				return
			}
		}
	})
	agents.Eventually(t, time.Minute, "half of the events", func() bool { return seen.Load() > middle })
	consumer("late", 1, nil)
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	<-quit
	wg.Wait()
	whole, err := os.ReadFile(r.Dir() + "/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(whole, []byte(`{"type":"text_delta"`)); n != lines || uint64(bytes.Count(whole, []byte{'\n'})) != seen.Load() {
		t.Errorf("%d texts, OnEvent saw %d events", n, seen.Load())
	}
	for _, name := range []string{"from the start", "stalled till the end", "late"} {
		same(t, name, got[name], whole)
	}
	from := whole
	for range middle - 1 {
		from = from[bytes.IndexByte(from, '\n')+1:]
	}
	same(t, "from the middle", got["from the middle"], from)
	same(t, "replay", replay(t, h, r.ID()), whole)
}

// A run without record gives the same events and leaves nothing.
func TestNoRecordLeavesNothing(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "ghost", "healthy")
	h := s.Host()
	spec := host.RunSpec{Agent: "ghost", Prompt: "lines 1000\nusage 1 2"}
	recorded := events(t, s.Start(h, spec))
	spec.NoRecord = true
	r := s.Start(h, spec)
	got := events(t, r)
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if d := agents.Difference(agents.Comparable(t, got), agents.Comparable(t, recorded)); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", r.Dir(), err)
	}
	if runs, err := h.Runs(context.Background()); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}
