package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// keepAlive is how often a stream on which nothing comes says that it is alive.
const keepAlive = 15 * time.Second

type eventsQuery struct {
	RunRef
	From   uint64 `query:"from" doc:"number (seq) of the first event; default: the first one, or the one behind Last-Event-ID"`
	LastID string `header:"Last-Event-ID" doc:"the last event that the client has"`
	Follow bool   `query:"follow" default:"true" doc:"go on until the run has ended"`
}

// first is the number of the first event that is wanted.
func (q *eventsQuery) first() (uint64, error) {
	switch {
	case q.From > 0:
		return q.From, nil
	case q.LastID == "":
		return 1, nil
	}
	last, err := strconv.ParseUint(q.LastID, 10, 63)
	if err != nil {
		return 0, app.Usagef("invalid Last-Event-ID: expected the number of an event")
	}
	return last + 1, nil
}

type outputQuery struct {
	RunRef
	Lines int `query:"lines" minimum:"0" maximum:"1000000" doc:"the last ones; 0: all"`
}

// stream is an answer that goes on.
type stream struct {
	mu sync.Mutex
	to *bufio.Writer
	at *http.ResponseController
}

func newStream(ctx huma.Context, kind string) *stream {
	_, w := humago.Unwrap(ctx)
	ctx.SetHeader("Content-Type", kind)
	ctx.SetStatus(http.StatusOK)
	return &stream{to: bufio.NewWriterSize(w, 16<<10), at: http.NewResponseController(w)}
}

// write writes parts, and sends all that was written if flush is set. A client that takes
// nothing for writeTime is left.
func (s *stream) write(flush bool, parts ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.at.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := s.to.Write(part); err != nil {
			return err
		}
	}
	if !flush {
		return nil
	}
	if err := s.to.Flush(); err != nil {
		return err
	}
	return s.at.Flush()
}

// flushSoon sends what was written at the latest a moment later, and a sign of life where
// nothing comes, until the context ends.
func (s *stream) flushSoon(ctx context.Context, wrote <-chan struct{}, alive []byte) {
	quiet := time.NewTimer(keepAlive)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wrote:
			_ = s.write(true) // the next write fails as well
		case <-quiet.C:
			if len(alive) > 0 {
				_ = s.write(true, alive)
			}
		}
		quiet.Reset(keepAlive)
	}
}

// copy sends events until the run has ended, or there are no more.
func (s *api) copy(ctx context.Context, to *stream, id string, from uint64, until func() uint64, frame func(seq uint64, line []byte) [][]byte, alive []byte) {
	sending, end := context.WithCancel(ctx)
	wrote := make(chan struct{}, 1)
	var flusher sync.WaitGroup
	flusher.Go(func() { to.flushSoon(sending, wrote, alive) })
	last := until()
	err := error(nil)
	if last == 0 || from <= last {
		err = s.follows.Events(sending, id, from, func(seq uint64, line []byte) error {
			if err := to.write(false, frame(seq, line)...); err != nil {
				return err
			}
			if seq == last {
				return errEnough
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
			return nil
		})
	}
	end()
	flusher.Wait()
	if err == nil || errors.Is(err, errEnough) {
		err = to.write(true)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees that the stream broke off, and goes on with Last-Event-ID
	}
}

var errEnough = io.EOF

func (s *api) addEvents(to huma.API) {
	describe := func(kind, text string) map[string]*huma.Response {
		return map[string]*huma.Response{"200": {Description: text, Content: map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: "string"}}}}}
	}
	register := func(op huma.Operation) huma.Operation {
		op.Tags, op.Errors = []string{"runs"}, reads
		return op
	}
	sse := register(huma.Operation{
		OperationID: "watchRun", Method: http.MethodGet, Path: "/v1/runs/{run}/events", Summary: "Follow the events of a run",
		Description: "Server-sent events. `id` is the number of the event, `data` its stored line: docs/schema/events.schema.json. After a break, `Last-Event-ID` goes on without gap and without repeat. 204: the run has ended, and there is nothing behind that.",
		Responses:   describe("text/event-stream", "events"),
	})
	sse.Responses["204"] = &huma.Response{Description: "there is nothing more"}
	huma.Register(to, sse, func(ctx context.Context, in *eventsQuery) (*huma.StreamResponse, error) {
		r, from, err := s.openFrom(ctx, in)
		if err != nil {
			return nil, problemOf(err)
		}
		info := r.Info()
		if info.End != nil && from > info.Events {
			return &huma.StreamResponse{Body: func(ctx huma.Context) { ctx.SetStatus(http.StatusNoContent) }}, nil
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			to := newStream(ctx, "text/event-stream")
			_ = to.write(true, []byte(": amux\n\n"))
			var head []byte
			s.copy(ctx.Context(), to, r.ID(), from, in.last(info.Events), func(seq uint64, line []byte) [][]byte {
				head = append(strconv.AppendUint(append(head[:0], "id: "...), seq, 10), "\ndata: "...)
				return [][]byte{head, line, []byte("\n\n")}
			}, []byte(":\n\n"))
		}}, nil
	})
	huma.Register(to, register(huma.Operation{
		OperationID: "readLog", Method: http.MethodGet, Path: "/v1/runs/{run}/log", Summary: "Read the events of a run as lines of JSON",
		Description: "The stored lines, one event a line. `follow=false` ends with what there is.",
		Responses:   describe("application/x-ndjson", "one event a line"),
	}), func(ctx context.Context, in *eventsQuery) (*huma.StreamResponse, error) {
		r, from, err := s.openFrom(ctx, in)
		if err != nil {
			return nil, problemOf(err)
		}
		events := r.Info().Events
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			to := newStream(ctx, "application/x-ndjson")
			s.copy(ctx.Context(), to, r.ID(), from, in.last(events), func(_ uint64, line []byte) [][]byte {
				return [][]byte{line, []byte("\n")}
			}, nil)
		}}, nil
	})
	huma.Register(to, register(huma.Operation{
		OperationID: "readOutput", Method: http.MethodGet, Path: "/v1/runs/{run}/output", Summary: "Read the agent's own output",
		Description: "Byte for byte as the agent wrote it: do not show it on a terminal unchecked.",
		Responses:   describe("application/octet-stream", "the output"),
	}), func(ctx context.Context, in *outputQuery) (*huma.StreamResponse, error) {
		r, err := s.open(ctx, in.Run)
		if err != nil {
			return nil, problemOf(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			to := newStream(ctx, "application/octet-stream")
			lines := in.Lines
			if lines == 0 {
				lines = 1 << 30
			}
			if err := errors.Join(r.Tail(lines, pieces{to}), to.write(true)); err != nil {
				panic(http.ErrAbortHandler) // the client sees that this was not all
			}
		}}, nil
	})
}

// pieces writes to a stream.
type pieces struct{ to *stream }

func (p pieces) Write(data []byte) (int, error) { return len(data), p.to.write(false, data) }

// last returns the number of the last event that is wanted; 0: that of the run's end. It
// ends the stream of a client that does not follow.
func (q *eventsQuery) last(events uint64) func() uint64 {
	return func() uint64 {
		if q.Follow {
			return 0
		}
		return max(events, 1)
	}
}

func (s *api) openFrom(ctx context.Context, in *eventsQuery) (app.Recorded, uint64, error) {
	from, err := in.first()
	if err != nil {
		return nil, 0, err
	}
	r, err := s.open(ctx, in.Run)
	return r, from, err
}

// isType reports whether a stored line is an event of a type.
func isType(line []byte, t string) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"`+t+`"`))
}
