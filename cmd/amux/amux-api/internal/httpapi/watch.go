package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

const (
	// lookEvery is the time from one look at the live runs to the next, while anybody watches.
	// A look that takes long is followed by a longer time.
	lookEvery = 500 * time.Millisecond
	// maxTitle is how much of a run's prompt is in a list that is sent again and again.
	maxTitle = 500
	// overlap is how far a look for runs that have ended goes back behind the look before.
	overlap = 2 * time.Second
	// maxEnded is how many of them are kept for those who watch slowly.
	maxEnded = 1000
)

// change is a line of the stream over all runs.
type change struct {
	Type     string          `json:"type"` // run, gone, question, answered, current
	Run      json.RawMessage `json:"run,omitempty"`
	Question json.RawMessage `json:"question,omitempty"`
	RunID    string          `json:"run_id,omitempty"`
	ID       string          `json:"interaction_id,omitempty"`
}

// asked names a question.
type asked struct{ run, id string }

// state is what is so at one moment. It is not changed once it is there.
type state struct {
	runs      map[string]json.RawMessage // those that live
	questions map[asked]json.RawMessage
	order     []asked // the first asked first
	ended     []ended // those that ended of late, the oldest first
	err       error
}

// ended is a run that has ended. It may have lived between two looks.
type ended struct {
	number int // from 1, in the order in which they were found
	id     string
	run    json.RawMessage
}

// lastEnded is the number of the newest one; 0: none is known.
func (s *state) lastEnded() int {
	if len(s.ended) == 0 {
		return 0
	}
	return s.ended[len(s.ended)-1].number
}

// feed looks at the live runs for all who watch them: once for all, and only while anybody
// does. Whoever is slow sees fewer states, and the newest always.
type feed struct {
	api *api

	mu       sync.Mutex
	watchers int
	stop     context.CancelFunc
	latest   *state
	changed  chan struct{} // closed when latest is replaced
}

// join begins to watch; leave ends it.
func (f *feed) join() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers++; f.watchers == 1 {
		ctx, stop := context.WithCancel(context.Background())
		f.stop, f.latest, f.changed = stop, nil, make(chan struct{})
		go f.look(ctx)
	}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.watchers--; f.watchers == 0 {
			f.stop()
		}
	})
}

// next waits for another state than one.
func (f *feed) next(ctx context.Context, seen *state) (*state, error) {
	for {
		f.mu.Lock()
		latest, changed := f.latest, f.changed
		f.mu.Unlock()
		if latest != nil && latest != seen {
			return latest, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *feed) look(ctx context.Context) {
	var found []ended
	last, rescued := time.Now(), time.Time{}
	for {
		began := time.Now()
		if began.Sub(rescued) >= rescueEvery {
			rescued = began
			go f.rescue(ctx)
		}
		now := f.api.state(ctx)
		if now.err == nil {
			found, now.err = f.api.ended(ctx, found, last.Add(-overlap))
			now.ended = found
		}
		last = began
		if ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		if ctx.Err() == nil {
			f.latest = now
			close(f.changed)
			f.changed = make(chan struct{})
		}
		f.mu.Unlock()
		select {
		case <-time.After(max(lookEvery, 10*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

// rescueEvery is how often it is looked for runs that nobody hosts any more.
const rescueEvery = 5 * time.Second

// rescue finds runs whose server has died another one, and records the end of those that
// nothing is left of: nobody else may look at them.
func (f *feed) rescue(ctx context.Context) {
	lost := slices.Concat(f.api.host.Orphans(), f.api.host.Abandoned())
	for _, id := range lost[:min(len(lost), maxRescued)] {
		f.api.follows.Rescue(ctx, id)
	}
}

// maxRescued bounds how many are looked after at once.
const maxRescued = 20

// state looks at the live runs and what they ask.
func (s *api) state(ctx context.Context) *state {
	out := &state{runs: map[string]json.RawMessage{}, questions: map[asked]json.RawMessage{}}
	live, err := s.host.Live(ctx)
	if err != nil {
		out.err = err
		return out
	}
	for _, i := range live {
		if !app.HasEnded(i) {
			out.runs[i.ID] = line(titled(runOf(i)))
		}
	}
	for _, q := range s.questions(ctx, live) {
		key := asked{q.RunID, q.ID}
		out.questions[key] = line(q)
		out.order = append(out.order, key)
	}
	return out
}

// ended adds the runs that ended since a time to those that are known. If no run was made or
// deleted in that time, none can have ended unseen, and the index is not read.
func (s *api) ended(ctx context.Context, known []ended, since time.Time) ([]ended, error) {
	if info, err := os.Stat(s.runs); err != nil || info.ModTime().Before(since) {
		return known, nil
	}
	var ids []string
	_, err := s.host.Spending(ctx, since, func(sp *host.Spending) {
		if sp.Run.Ended != nil && !slices.ContainsFunc(known, func(e ended) bool { return e.id == sp.Run.ID }) {
			ids = append(ids, sp.Run.ID)
		}
	})
	if err != nil {
		return known, err
	}
	number := (&state{ended: known}).lastEnded()
	known = slices.Clone(known[max(0, len(known)-maxEnded):])
	for _, id := range ids {
		if r, err := s.host.Open(ctx, id); err == nil { // else it was deleted meanwhile
			number++
			known = append(known, ended{number, id, line(titled(runOf(r.Info())))})
		}
	}
	return known, nil
}

// titled cuts the prompt of a run.
func titled(r Run) Run {
	if len(r.Prompt) > maxTitle {
		r.Prompt = string(bytes.ToValidUTF8([]byte(r.Prompt[:maxTitle]), nil)) + "…"
	}
	return r
}

func line(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil { // what the API answers with can be written
		panic(err)
	}
	return data
}

// changes are what has become of one state in another one. A run that is not live any more is
// looked at once more, for its end.
func (s *api) changes(ctx context.Context, from, to *state) (all []change) {
	for _, id := range slices.Sorted(maps.Keys(to.runs)) {
		if !bytes.Equal(from.runs[id], to.runs[id]) {
			all = append(all, change{Type: "run", Run: to.runs[id]})
		}
	}
	for key := range from.questions {
		if to.questions[key] == nil {
			all = append(all, change{Type: "answered", RunID: key.run, ID: key.id})
		}
	}
	for _, key := range to.order {
		if !bytes.Equal(from.questions[key], to.questions[key]) {
			all = append(all, change{Type: "question", Question: to.questions[key], RunID: key.run, ID: key.id})
		}
	}
	for _, e := range to.ended {
		if e.number > from.lastEnded() && from.runs[e.id] == nil {
			all = append(all, change{Type: "run", Run: e.run})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(from.runs)) {
		if to.runs[id] != nil {
			continue
		}
		if r, err := s.host.Open(ctx, id); err == nil {
			all = append(all, change{Type: "run", Run: line(titled(runOf(r.Info())))})
		} else {
			all = append(all, change{Type: "gone", RunID: id})
		}
	}
	return all
}

func (s *api) addWatch(to huma.API) {
	huma.Register(to, huma.Operation{
		OperationID: "watchRuns", Method: http.MethodGet, Path: "/v1/watch", Summary: "Follow all live runs, and what they ask", Tags: []string{"runs"}, Errors: reads,
		Description: "Server-sent events without `id`: each connection begins with all that is so, then `current`, then what changes. `data` is JSON with `type`: `run` has the `run` (the last time with its end; `prompt` is cut), `gone` the `run_id` of a run whose record was deleted, `question` the `question`, `answered` the `run_id` and `interaction_id` of one that is open no more.",
		Responses:   map[string]*huma.Response{"200": {Description: "changes", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: "string"}}}}},
	}, func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			if err := s.watch(ctx.Context(), newStream(ctx, "text/event-stream")); err != nil {
				panic(http.ErrAbortHandler) // the client comes again
			}
		}}, nil
	})
}

func (s *api) watch(ctx context.Context, to *stream) error {
	leave := s.feed.join()
	defer leave()
	sending, end := context.WithCancel(ctx)
	wrote := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() { to.flushSoon(sending, wrote, []byte(":\n\n")) })
	defer flusher.Wait()
	defer end()
	if err := to.write(true, []byte(": amux\n\n")); err != nil {
		return err
	}
	seen := &state{}
	first := true
	for {
		now, err := s.feed.next(ctx, seen)
		if err != nil {
			return err
		}
		if now.err != nil {
			return now.err
		}
		if first {
			seen.ended = now.ended
		}
		all := s.changes(ctx, seen, now)
		if first {
			all = append(all, change{Type: "current"})
		}
		first, seen = false, now
		for _, c := range all {
			if err := to.write(false, []byte("data: "), line(c), []byte("\n\n")); err != nil {
				return err
			}
		}
		if len(all) > 0 {
			if err := to.write(true); err != nil {
				return err
			}
		}
	}
}
