package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxRequest is above what amux queues for an agent's stdin.
	maxRequest = 32 << 20
	maxAnswer  = 16 << 20
	maxText    = 4 << 10 // of an answer that is no JSON
)

// bridge is one server and the two pipes to amux.
type bridge struct {
	config
	out      *output
	stderr   *os.File
	server   *server // nil: somebody else's
	client   *http.Client
	base     string
	password string
	failure  chan error // the first

	// Of the events, for listen.
	reading atomic.Bool  // the server is waited for
	quiet   atomic.Int32 // ticks since it has said something
}

// run is the whole of it: the exit code, and what to say.
func run(c config, stdin io.Reader, stdout, stderr *os.File) (int, error) {
	b := &bridge{config: c, stderr: stderr, failure: make(chan error, 1)}
	b.out = newOutput(stdout, func(err error) { b.fail("write to stdout: %v", err) })
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, signals...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	if c.url == "" {
		var err error
		if b.server, b.password, err = start(c, stderr); err != nil {
			return 1, err
		}
		defer b.server.end()
	} else {
		b.base = c.url
		b.password = os.Getenv(c.passwordEnv)
	}
	b.client = &http.Client{
		// The environment's proxies are not for loopback, where our server is.
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}

	ready := make(chan struct{})
	var events io.ReadCloser
	go func() {
		defer close(ready)
		var err error
		if events, err = b.open(ctx); err != nil {
			b.failWith(err)
		}
	}()
	late := make(chan struct{})
	go func() {
		if !wait(c.startTime, ready) {
			close(late)
		}
	}()
	select {
	case <-ready:
	case <-late:
		return 1, fmt.Errorf("the server was not ready within %s", c.startTime)
	case <-b.gone():
		return 1, b.server.gone()
	case s := <-asked:
		return signalCode(s), nil
	}
	if events == nil {
		return 1, <-b.failure
	}
	defer events.Close()

	streamed, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(streamed)
		if err := b.stream(events); err != nil {
			b.out.flush()
			if b.server != nil {
				// Its end says more.
				wait(2*time.Second, b.server.ended)
			}
			b.failWith(err)
		}
	}()
	go b.listen(c.silence, streamed)
	go func() {
		defer close(stopped)
		b.requests(ctx, stdin)
	}()
	select {
	case <-stopped:
		select {
		case err := <-b.failure:
			return 1, err
		default:
			return 0, nil
		}
	case s := <-asked:
		return signalCode(s), nil
	case <-b.gone():
		wait(2*time.Second, streamed) // what it has said is printed first
		return 1, b.server.gone()
	case err := <-b.failure:
		if b.server != nil && isClosed(b.server.ended) {
			err = b.server.gone()
		}
		return 1, err
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// gone is closed when our server has ended.
func (b *bridge) gone() <-chan struct{} {
	if b.server == nil {
		return nil
	}
	return b.server.ended
}

func (b *bridge) fail(format string, args ...any) { b.failWith(fmt.Errorf(format, args...)) }

func (b *bridge) failWith(err error) {
	select {
	case b.failure <- err:
	default:
	}
}

func (b *bridge) note(format string, args ...any) {
	fmt.Fprintf(b.stderr, "amux-bridge: "+format+"\n", args...)
}

// open waits for the server, says that it is ready and returns its events.
func (b *bridge) open(ctx context.Context) (io.ReadCloser, error) {
	if b.server != nil {
		select {
		case b.base = <-b.server.url:
		case <-b.server.ended:
			return nil, b.server.gone()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	health, err := b.get(ctx, b.health, "application/json")
	if err != nil {
		return nil, err
	}
	defer health.Close()
	report, err := io.ReadAll(io.LimitReader(health, maxText))
	if err != nil || !json.Valid(report) {
		return nil, fmt.Errorf("%s of the server at %s is no JSON: %.200q", b.health, b.base, report)
	}
	events, err := b.get(ctx, b.events, "text/event-stream")
	if err != nil {
		return nil, err
	}
	b.out.line(fmt.Appendf(nil, `{"type":"ready","health":%s}`, report))
	return events, nil
}

// get opens a path that must be of this type.
func (b *bridge) get(ctx context.Context, path, contentType string) (io.ReadCloser, error) {
	resp, err := b.do(ctx, "GET", path, nil)
	if err != nil {
		return nil, fmt.Errorf("the server at %s cannot be reached: %w", b.base, errors.Unwrap(err))
	}
	got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		err = fmt.Errorf("the server at %s refuses the password; it is that of %s", b.base, b.passwordEnv)
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("the server at %s answers %s with status %d", b.base, path, resp.StatusCode)
	case got != contentType:
		err = fmt.Errorf("the server at %s answers %s with %s, not with %s: it is another kind of server", b.base, path, got, contentType)
	default:
		return resp.Body, nil
	}
	resp.Body.Close()
	return nil, err
}

func (b *bridge) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if b.password != "" {
		req.SetBasicAuth(b.user, b.password)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return b.client.Do(req)
}

// request is a line of stdin.
type request struct {
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`
}

// requests does what stdin asks, until it ends.
func (b *bridge) requests(ctx context.Context, stdin io.Reader) {
	r := bufio.NewReaderSize(stdin, 64<<10)
	for {
		line, err := readLine(r)
		if len(bytes.TrimSpace(line)) > 0 {
			var q request
			if json.Unmarshal(line, &q) != nil || q.Method == "" || !strings.HasPrefix(q.Path, "/") {
				b.fail("a line of stdin is no request: %.200q", line)
				return
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				b.out.line(b.answer(ctx, q))
			}()
			if !wait(b.answerTime, done) {
				path, _, _ := strings.Cut(q.Path, "?")
				b.fail("the server hangs: %s %s was not answered within %s", q.Method, path, b.answerTime)
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			b.fail("read stdin: %v", err)
			return
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if line = append(line, piece...); len(line) > maxRequest {
			return nil, fmt.Errorf("a request has more than %d MiB", maxRequest>>20)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// response is a line of stdout.
type response struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Status int             `json:"status,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Text   string          `json:"text,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func (b *bridge) answer(ctx context.Context, q request) []byte {
	a := response{Type: "response", ID: q.ID}
	if resp, err := b.do(ctx, q.Method, q.Path, q.Body); err != nil {
		a.Error = "it was not answered: " + err.Error()
	} else {
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		resp.Body.Close()
		a.Status = resp.StatusCode
		switch {
		case err != nil:
			a.Error = "its answer ended early: " + err.Error()
		case len(data) > maxAnswer:
			a.Error = fmt.Sprintf("its answer has more than %d MiB", maxAnswer>>20)
		case json.Valid(data):
			a.Body = data
		default:
			a.Text = strings.ToValidUTF8(string(data[:min(len(data), maxText)]), "\ufffd")
		}
	}
	line, err := json.Marshal(a)
	if err != nil {
		b.failWith(err)
	}
	return line
}
