package fakemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What every reply costs. ThinkingTokens is the part of OutputTokens that a reply
// with thinking names.
const (
	InputTokens      = 100
	CacheReadTokens  = 300
	CacheWriteTokens = 20
	OutputTokens     = 10
	ThinkingTokens   = 4
)

// maxBody bounds one request.
const maxBody = 256 << 20

// Options of a Server. The zero value is valid.
type Options struct {
	// Addr to listen on; default a free port of 127.0.0.1.
	Addr string
	// Default is the script for prompts without a marker; default "text".
	Default string
}

// Server is a running fake provider.
type Server struct {
	URL string

	opts   Options
	http   *http.Server
	served chan struct{}

	mu       sync.Mutex
	always   string // a marker; empty: the prompt's own
	requests []*Request
	changed  chan struct{} // closed and replaced at every request
	tries    map[string]int
	ids      map[string]int
}

// Request is one request as it came.
type Request struct {
	N      int             `json:"n"` // from 1
	Time   time.Time       `json:"time"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Header http.Header     `json:"header"` // keys redacted
	Body   json.RawMessage `json:"body,omitempty"`
	Script string          `json:"script,omitempty"` // "bash"; empty: not a model request
	Arg    string          `json:"arg,omitempty"`
	Round  int             `json:"round"`
	Status int             `json:"status"`
	// Broken says that the agent closed the connection before the reply's end.
	Broken bool `json:"broken,omitempty"`
}

// Start listens and serves until Close.
func Start(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Default == "" {
		opts.Default = "text"
	}
	if _, ok := scripts[opts.Default]; !ok {
		return nil, fmt.Errorf("no script %q", opts.Default)
	}
	listener, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the fake model: %w", err)
	}
	s := &Server{
		URL:     "http://" + listener.Addr().String(),
		opts:    opts,
		served:  make(chan struct{}),
		changed: make(chan struct{}),
		tries:   map[string]int{},
		ids:     map[string]int{},
	}
	mux := http.NewServeMux()
	s.routeAnthropic(mux)
	s.routeChat(mux)
	s.routeOpenAI(mux)
	s.routeGemini(mux)
	mux.HandleFunc("GET /_fakemodel/requests", s.serveRequests)
	mux.HandleFunc("POST /_fakemodel/reset", func(w http.ResponseWriter, _ *http.Request) { s.Reset() })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { s.note(r, nil, http.StatusOK) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody))
		s.note(r, body, http.StatusNotFound)
		http.NotFound(w, r)
	})
	s.http = &http.Server{Handler: mux}
	go func() {
		defer close(s.served)
		s.http.Serve(listener)
	}()
	return s, nil
}

// Close ends the server and every reply under way.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return err
}

// Requests returns copies of all requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.requests))
	for i, r := range s.requests {
		all[i] = *r
	}
	return all
}

// ModelRequests is Requests without what is not answered by a script.
func (s *Server) ModelRequests() []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.Script == "" })
}

// Wait blocks until match holds for a request, and returns it.
func (s *Server) Wait(ctx context.Context, match func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		for _, r := range s.Requests() {
			if match(r) {
				return r, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for a request at the fake model: %w", ctx.Err())
		}
	}
}

// Always answers every request by the script of a marker, "[fm:drop=3]", whatever the
// prompt: also one that the agent makes of its own accord.
func (s *Server) Always(marker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = marker
}

// Reset forgets requests, tries and ids.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	clear(s.tries)
	clear(s.ids)
}

func (s *Server) serveRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(s.Requests())
}

// note keeps a request. The caller may change what it returns by update.
func (s *Server) note(r *http.Request, body []byte, status int) *Request {
	header := r.Header.Clone()
	for name := range header {
		switch strings.ToLower(name) {
		case "authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie":
			header[name] = []string{"redacted"}
		}
	}
	kept := &Request{Time: time.Now(), Method: r.Method, Path: r.URL.Path, Header: header, Status: status}
	if json.Valid(body) {
		kept.Body = body
	} else if len(body) > 0 {
		kept.Body, _ = json.Marshal(string(body))
	}
	s.update(func() {
		s.requests = append(s.requests, kept)
		kept.N = len(s.requests)
	})
	return kept
}

// update changes what is kept, and wakes those who wait.
func (s *Server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// id makes "msg_fm000001", "msg_fm000002", …
func (s *Server) id(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[prefix]++
	return fmt.Sprintf("%s_fm%06d", prefix, s.ids[prefix])
}

// reply reads a request into body and asks the scripts what to reply. model is read after
// that, since it may be part of body.
func (s *Server) reply(data []byte, body interface{ turn() *Turn }, model *string) (*Turn, Reply) {
	if err := json.Unmarshal(data, body); err != nil {
		return &Turn{Script: "?"}, failure(http.StatusBadRequest, "invalid_request_error", err.Error())
	}
	t := body.turn()
	t.Model = *model
	return t, s.ask(t)
}

// ask runs the script that the turn calls for.
func (s *Server) ask(t *Turn) Reply {
	name, arg := t.marker()
	s.mu.Lock()
	if m := markerPattern.FindStringSubmatch(s.always); m != nil {
		name, arg = m[1], m[2]
	}
	s.mu.Unlock()
	run, ok := scripts[name]
	if name == "" {
		name, run, ok = s.opts.Default, scripts[s.opts.Default], true
	}
	t.Script, t.Arg = name, arg
	if strings.Contains(t.Model, UnknownModel) {
		return unknownModel(t.Model)
	}
	if !ok {
		return Reply{Status: http.StatusBadRequest, Message: "the fake model has no script " + strconv.Quote(name)}
	}
	s.mu.Lock()
	s.tries[t.Prompt]++
	t.Try = s.tries[t.Prompt]
	round := fmt.Sprintf("%d %s", t.Round, t.Prompt)
	s.tries[round]++
	t.Again = s.tries[round]
	s.mu.Unlock()
	return run(t)
}
