package hosttest

import (
	"io"
	"os"
	"sync"
	"time"
)

// pipeSize is what a pipe holds.
const pipeSize = 64 << 10

// pipe is bytes on their way in one direction. Its methods may be called concurrently, and
// wait on channels only, so that the time of testing/synctest passes meanwhile.
type pipe struct {
	mu       sync.Mutex
	data     []byte
	ended    bool // nothing more is written
	broken   bool // nothing more is read
	deadline time.Time
	changed  chan struct{} // closed and replaced at every change
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{})} }

func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// end says that nothing more is written; what is there is still read.
func (p *pipe) end() { p.change(func() { p.ended = true }) }

// shut says that nobody reads any more.
func (p *pipe) shut() { p.change(func() { p.broken = true; p.data = nil }) }

func (p *pipe) setDeadline(t time.Time) { p.change(func() { p.deadline = t }) }

// TryWrite writes what there is room for.
func (p *pipe) TryWrite(b []byte) (int, error) {
	n, _, err := p.put(b)
	return n, err
}

// put is TryWrite; if nothing was written, there may be room when changed is closed.
func (p *pipe) put(b []byte) (n int, changed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.broken {
		return 0, nil, io.ErrClosedPipe
	}
	if n = min(len(b), pipeSize-len(p.data)); n > 0 {
		p.data = append(p.data, b[:n]...)
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return n, p.changed, nil
}

// write writes all of b, or returns when stop is closed.
func (p *pipe) write(b []byte, stop <-chan struct{}) (done int, err error) {
	for {
		n, changed, err := p.put(b[done:])
		if done += n; err != nil || done == len(b) {
			return done, err
		}
		if n == 0 {
			select {
			case <-changed:
			case <-stop:
				return done, io.ErrClosedPipe
			}
		}
	}
}

// read reads what there is, and waits for something unless stop is closed.
func (p *pipe) read(b []byte, stop <-chan struct{}) (n int, err error) {
	for {
		p.mu.Lock()
		n = copy(b, p.data)
		p.data = p.data[n:]
		ended, broken, deadline, changed := p.ended, p.broken, p.deadline, p.changed
		p.mu.Unlock()
		switch {
		case n > 0:
			p.change(func() {})
			return n, nil
		case broken:
			return 0, os.ErrClosed
		case ended:
			return 0, io.EOF
		}
		var late <-chan time.Time
		if !deadline.IsZero() {
			if !time.Now().Before(deadline) {
				return 0, os.ErrDeadlineExceeded
			}
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-changed:
		case <-late:
		case <-stop:
			return 0, io.ErrClosedPipe
		}
	}
}

// reader is the end of a pipe that a shim reads.
type reader struct{ *pipe }

func (r reader) Read(b []byte) (int, error)        { return r.read(b, nil) }
func (r reader) SetReadDeadline(t time.Time) error { r.setDeadline(t); return nil }
func (r reader) Close() error                      { r.shut(); return nil }

// writer is the end of a pipe that a shim writes.
type writer struct{ *pipe }

func (w writer) Write(b []byte) (int, error) { return w.write(b, nil) }
func (w writer) Close() error                { w.end(); return nil }

// conn is an end of a connection.
type conn struct{ in, out *pipe }

// connect makes a connection.
func connect() (*conn, *conn) {
	a, b := newPipe(), newPipe()
	return &conn{a, b}, &conn{b, a}
}

func (c *conn) Read(b []byte) (int, error)        { return c.in.read(b, nil) }
func (c *conn) Write(b []byte) (int, error)       { return c.out.write(b, nil) }
func (c *conn) TryWrite(b []byte) (int, error)    { return c.out.TryWrite(b) }
func (c *conn) SetReadDeadline(t time.Time) error { c.in.setDeadline(t); return nil }

func (c *conn) Close() error {
	c.in.shut()
	c.out.end()
	return nil
}
