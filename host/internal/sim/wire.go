//go:build unix

package sim

import (
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/shim"
)

// queue is one direction: what one process sends arrives at another some time later, in
// order.
type queue[T any] struct {
	mu   sync.Mutex
	list []T
	end  bool
	sent int // that are under way
	last time.Time
	bell chan struct{}
}

func newQueue[T any]() *queue[T] { return &queue[T]{bell: make(chan struct{}, 1)} }

func (q *queue[T]) later(after time.Duration, do func()) {
	q.mu.Lock()
	now := time.Now()
	at := now.Add(after)
	if !at.After(q.last) {
		at = q.last.Add(1)
	}
	q.last = at
	q.sent++
	q.mu.Unlock()
	time.AfterFunc(at.Sub(now), func() {
		q.mu.Lock()
		q.sent--
		do()
		q.mu.Unlock()
		select {
		case q.bell <- struct{}{}:
		default:
		}
	})
}

func (q *queue[T]) push(after time.Duration, items ...T) {
	q.later(after, func() { q.list = append(q.list, items...) })
}

func (q *queue[T]) close(after time.Duration) { q.later(after, func() { q.end = true }) }

// flushed reports that all that was sent was taken.
func (q *queue[T]) flushed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sent == 0 && len(q.list) == 0
}

func (q *queue[T]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// take returns at most n of what has arrived.
func (q *queue[T]) take(n int) (items []T, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.list))
	items = q.list[:n:n]
	q.list = q.list[n:]
	return items, q.end && len(q.list) == 0
}

// conn is an end of a connection.
type conn struct {
	p       *Proc
	in, out *queue[byte]
	send    *rand.Rand
	wake    *rand.Rand // of wake-ups, which another goroutine sends than the rest
	receive *rand.Rand
	end     *rand.Rand

	once     sync.Once
	closed   chan struct{}
	mu       sync.Mutex
	closedAt time.Time
	deadline <-chan time.Time
}

var _ shim.Stream = (*conn)(nil)

// connect makes a connection between two processes.
func connect(name string, a, b *Proc) (*conn, *conn) {
	there, back := newQueue[byte](), newQueue[byte]()
	return newConn(a, name+" there", back, there), newConn(b, name+" back", there, back)
}

func newConn(p *Proc, name string, in, out *queue[byte]) *conn {
	c := &conn{
		p: p, in: in, out: out, closed: make(chan struct{}),
		send: p.w.Rand(name + " send"), wake: p.w.Rand(name + " wake"), receive: p.w.Rand(name + " receive"),
		end: p.w.Rand(name + " end"),
	}
	p.OnDeath(func() { _ = c.Close() })
	return c
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		c.closedAt = time.Now()
		c.mu.Unlock()
		close(c.closed)
		// What is sent at this moment is before it.
		time.AfterFunc(1, func() { c.out.close(time.Duration(1 + c.end.Int64N(int64(100*time.Microsecond)))) })
	})
	return nil
}

// mayWrite reports that the connection is not closed, or at this moment: who is first of
// the goroutine that closes it and one that writes is chance.
func (c *conn) mayWrite() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closedAt.IsZero() || c.closedAt.Equal(time.Now())
}

func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Write sends. Each call is one frame of the shim's protocol.
func (c *conn) Write(b []byte) (int, error) {
	if !c.mayWrite() {
		return 0, syscall.EPIPE
	}
	fate := c.p.lastStep("send")
	if fate == isDead {
		return 0, syscall.EPIPE
	}
	if fate == lives || c.send.IntN(2) == 0 {
		c.deliver(slices.Clone(b))
	}
	if fate == dies {
		c.p.Kill()
		return 0, syscall.EPIPE
	}
	return len(b), nil
}

func (c *conn) deliver(b []byte) {
	if len(b) != 17 || b[4] != 'w' {
		c.out.push(latency(c.send), b...)
		return
	}
	after := latency(c.wake)
	if !c.p.w.isQuiet() {
		switch c.wake.IntN(32) {
		case 0:
			c.p.w.Count("duplicated wake-up")
			c.out.push(after, b...)
		case 1:
			c.p.w.Count("delayed wake-up")
			after += time.Duration(c.wake.Int64N(int64(2 * time.Second)))
		}
	}
	c.out.push(after, b...)
}

// TryWrite sends, if the connection has room.
func (c *conn) TryWrite(b []byte) (int, error) {
	if c.wake.IntN(16) == 0 && !c.p.w.isQuiet() {
		c.p.w.Count("full socket")
		return 0, nil
	}
	return c.Write(b)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline = nil; !t.IsZero() {
		c.deadline = time.After(time.Until(t))
	}
	return nil
}

func (c *conn) Read(b []byte) (int, error) {
	for {
		if c.isClosed() {
			return 0, os.ErrClosed
		}
		n := min(len(b), c.in.len())
		if n > 1 && c.receive.IntN(16) == 0 && !c.p.w.isQuiet() {
			n = 1 + c.receive.IntN(n-1)
			c.p.w.Count("short read")
		}
		data, end := c.in.take(n)
		if len(data) > 0 {
			switch c.p.step("receive") {
			case dies:
				c.p.Kill()
				return 0, os.ErrClosed
			case isDead:
				return 0, os.ErrClosed
			}
			return copy(b, data), nil
		}
		if end {
			return 0, io.EOF
		}
		c.mu.Lock()
		deadline := c.deadline
		c.mu.Unlock()
		select {
		case <-c.in.bell:
		case <-c.closed:
		case <-deadline:
			return 0, os.ErrDeadlineExceeded
		}
	}
}
