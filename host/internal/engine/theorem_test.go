package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// record writes the journal of a run that goes on until its agent has left, in one
// second each record.
func record(t *testing.T, path string) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w, err := journal.OpenWriter(path, func() time.Time { now = now.Add(time.Second); return now })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	add := func(kind journal.Kind, payload []byte) {
		if err := w.Append(kind, payload); err != nil {
			t.Fatal(err)
		}
	}
	add(journal.KindState, journal.Encode(journal.State{To: Queued}))
	add(journal.KindState, journal.Encode(journal.State{From: Queued, To: Starting}))
	add(journal.KindPlan, journal.Encode(journal.Plan{Spawn: 1, Attempt: 1, SessionID: "s", Warnings: []string{"careful"}}))
	add(journal.KindSpawned, journal.Encode(journal.Spawned{Spawn: 1, PID: 7}))
	add(journal.KindState, journal.Encode(journal.State{From: Starting, To: Running}))
	add(journal.KindInput, journal.Encode(journal.Input{Kind: "prompt", ID: "prompt-1", Text: "go"}))
	for i := range 40 {
		add(journal.KindStdout, fmt.Appendf(nil, "line %d\nhalf of ", i))
		switch i % 10 {
		case 3:
			add(journal.KindStderr, []byte("a note\n"))
		case 5:
			add(journal.KindInput, journal.Encode(journal.Input{Kind: "pause"}))
			add(journal.KindInput, journal.Encode(journal.Input{Kind: "resume"}))
		case 7:
			add(journal.KindStdout, []byte("ask\n"))
			for range 2 { // the second and those of other questions make no event
				add(journal.KindPreview, journal.Encode(journal.Preview{ID: "q", Path: "x", Diff: "+n\n"}))
				add(journal.KindPreview, journal.Encode(journal.Preview{ID: "other", Path: "x", Diff: "+n\n"}))
			}
			add(journal.KindInput, journal.Encode(journal.Input{Kind: "approve", ID: "q"}))
		}
	}
	add(journal.KindInput, journal.Encode(journal.Input{Kind: "end"}))
	add(journal.KindExit, journal.Encode(journal.Exit{Spawn: 1, Code: 0}))
}

// echo is an adapter: what it says depends on the inputs alone, how it says it on chance.
type echo struct {
	rand  *rand.Rand
	dieAt uint64 // the input that it does not survive; 0: none
	queue chan *pb.ConverseResponse
	left  chan struct{}
	leave func()
}

func newEcho(seed uint64, dieAt uint64) *echo {
	e := &echo{rand: rand.New(rand.NewPCG(seed, 1)), dieAt: dieAt, queue: make(chan *pb.ConverseResponse, 1000), left: make(chan struct{})}
	e.leave = sync.OnceFunc(func() { close(e.left) })
	return e
}

func (e *echo) Send(req *pb.ConverseRequest) error {
	resp := &pb.ConverseResponse{}
	say := func(n uint64, k uint32, t, object string) {
		out := &pb.Output{N: n, K: k, Kind: pb.OutputKind_OUTPUT_EVENT, Type: t, Data: []byte(object)}
		if half := len(object) / 2; e.rand.IntN(4) == 0 {
			first := &pb.Output{N: n, K: k, Kind: out.Kind, Type: t, Data: []byte(object[:half]), More: true}
			resp.Outputs = append(resp.Outputs, first)
			out.Data = []byte(object[half:])
		}
		resp.Outputs = append(resp.Outputs, out)
	}
	for i, in := range req.Inputs {
		n := req.FirstN + uint64(i)
		if n == e.dieAt {
			e.queue <- resp // of what it has begun, perhaps
			e.queue <- nil
			return nil
		}
		text := string(in.Data)
		switch {
		case in.Kind == pb.InputKind_INPUT_STDOUT && strings.HasSuffix(text, "ask"):
			say(n, 1, "approval_request", `{"interaction_id":"q","action":"Bash"}`)
		case in.Kind == pb.InputKind_INPUT_STDOUT:
			say(n, 1, "text_delta", fmt.Sprintf(`{"delta":%q}`, text))
			say(n, 2, "debug", fmt.Sprintf(`{"level":"info","message":"input %d"}`, n))
		case in.Kind == pb.InputKind_INPUT_APPROVE:
			say(n, 1, "approval_granted", `{"interaction_id":"q"}`)
			resp.Outputs = append(resp.Outputs, &pb.Output{N: n, K: 2, Kind: pb.OutputKind_OUTPUT_WRITE, Data: []byte("yes")})
		case in.Kind == pb.InputKind_INPUT_EXIT:
			resp.Outputs = append(resp.Outputs, &pb.Output{N: n, K: 1, Kind: pb.OutputKind_OUTPUT_OUTCOME, Outcome: &pb.Outcome{}})
		}
		switch e.rand.IntN(3) {
		case 0:
			resp.Done = n
			e.queue <- resp
			resp = &pb.ConverseResponse{Done: n}
		case 1: // what this input gave comes before it is done
			resp.Done = n - 1
			e.queue <- resp
			resp = &pb.ConverseResponse{Done: n - 1}
		}
	}
	resp.Done = req.FirstN + uint64(len(req.Inputs)) - 1
	e.queue <- resp
	return nil
}

func (e *echo) Recv() (*pb.ConverseResponse, error) {
	select {
	case resp := <-e.queue:
		if resp == nil {
			return nil, errors.New("died")
		}
		return resp, nil
	case <-e.left:
		return nil, io.EOF
	}
}

func (e *echo) Error(err error) error { return err }

// growing is a journal that becomes longer as it is read, and whose shim then leaves.
type growing struct {
	*os.File
	rand     *rand.Rand
	mu       sync.Mutex
	size     int64
	whole    int64
	released bool
}

func (g *growing) Committed() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.size
}

func (g *growing) Wait(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.size == g.whole {
		if g.released {
			return io.EOF
		}
		g.released = true
		return ErrShimGone
	}
	g.size = min(g.size+1+g.rand.Int64N(g.whole/4), g.whole)
	return nil
}

func (g *growing) Alone() bool { return true }

// ending records the end, and counts what the adapter has written.
type ending struct {
	Effects
	journal *growing
	writer  *journal.Writer
	mu      sync.Mutex
	writes  map[EffectID]int
	late    []journal.State // recorded while the shim leaves
}

func (e *ending) Append(kind journal.Kind, record []byte) error {
	err := e.writer.Append(kind, record)
	e.journal.mu.Lock()
	e.journal.whole = e.writer.Size()
	e.journal.size = e.journal.whole
	e.journal.mu.Unlock()
	return err
}

func (e *ending) Settle(bool) (settled Settled, err error) {
	for _, state := range e.late {
		err = errors.Join(err, e.Append(journal.KindState, journal.Encode(state)))
	}
	return settled, err
}

func (e *ending) Write(id EffectID, _ []byte) {
	e.mu.Lock()
	e.writes[id]++
	e.mu.Unlock()
}

// tell makes the events of the recorded run with adapters that die as often as deaths
// says, and returns them.
func tell(t *testing.T, dir string, seed uint64, deaths int, late ...journal.State) (events []byte, effects *ending) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	name := filepath.Join(dir, fmt.Sprintf("journal-%d-%d", seed, deaths))
	now := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	record(t, name)
	writer, err := journal.OpenWriter(name, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	path := name + ".jsonl"
	log, err := eventlog.Open(path, "01J", "echo", true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	src := &growing{File: file, rand: random, whole: writer.Size()}
	effects = &ending{journal: src, writer: writer, writes: map[EffectID]int{}, late: late}
	e := New(Config{
		Journal: src, Log: log, Limits: Limits{Progress: time.Minute, Volume: 1 << 20, Stdin: 1 << 10}, Start: &pb.Start{Agent: "echo"}, Effects: effects,
		Policy: &Policy{},
	})
	for n := range deaths + 1 {
		dieAt := uint64(0)
		if n < deaths {
			dieAt = 2 + random.Uint64N(40)
		}
		adapter := newEcho(seed+uint64(n)*100, dieAt)
		err = e.Run(t.Context(), Reading{Conversation: adapter, Leave: adapter.leave, Behind: 1 << 62}) // nothing is decided, which would change the journal
		if _, broken := err.(*Broken); n < deaths && !broken {
			t.Fatalf("seed %d: reading %d ended with %v", seed, n, err)
		}
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if s := e.Summary(); s.State != Completed {
		t.Errorf("seed %d: %s", seed, s.State)
	}
	events, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return events, effects
}

// However records arrive, however the adapter batches what it says, and however often it
// dies in the middle of an input, the events are the same, each once, in the order of
// the journal; and each effect has one number.
func TestEventsAreAFunctionOfTheJournal(t *testing.T) {
	dir := t.TempDir()
	want, _ := tell(t, dir, 0, 0)
	if n := bytes.Count(want, []byte(`"type":"run_end"`)); n != 1 || !bytes.Contains(want, []byte(`"delta":"half of line 39"`)) {
		t.Fatalf("%d ends in\n%s", n, want)
	}
	for seed := uint64(1); seed <= 60; seed++ {
		got, effects := tell(t, dir, seed, int(seed%4))
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: the events differ:\n%s\nwant:\n%s", seed, got, want)
		}
		if len(effects.writes) != 4 {
			t.Errorf("seed %d: the adapter wrote %v", seed, effects.writes)
		}
	}
}

// What is recorded while the shim leaves stands before the end, and the last transition
// begins where it ends.
func TestLateRecordsComeBeforeTheEnd(t *testing.T) {
	events, _ := tell(t, t.TempDir(), 1, 0, journal.State{From: Running, To: Waiting}, journal.State{From: Waiting, To: Paused})
	lines := bytes.Split(bytes.TrimSpace(events), []byte("\n"))
	for i, want := range []string{`"from":"running","to":"waiting"`, `"from":"waiting","to":"paused"`, `"type":"session_end"`, `"from":"paused","to":"completed"`, `"type":"run_end"`} {
		if line := lines[len(lines)-5+i]; !bytes.Contains(line, []byte(want)) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
}
