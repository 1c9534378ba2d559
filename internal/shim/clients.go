package shim

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/amux-dev/amux/pluginapi/code"
)

// conn is one connection. Doorbells are written from the goroutine that
// appended if nobody else is writing, else by the connection's own.
type conn struct {
	Stream
	write sync.Mutex
	wake  chan struct{}
	host  bool
}

func newConn(c Stream) *conn { return &conn{Stream: c, wake: make(chan struct{}, 1)} }

func (c *conn) send(b []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.Write(b)
}

// clients are those who are connected: the newest host, readers of the record, and one
// who types.
type clients struct {
	size func() int64 // of the journal

	mu       sync.Mutex
	conns    map[*conn]bool
	host     *conn // the newest
	epoch    int   // how many hosts there were
	lease    Lease
	leaseEnd time.Time
}

// add takes in a connection and returns how many hosts there were.
func (l *clients) add(c *conn) (epoch int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	if c.host {
		l.host = c
		l.epoch++
	}
	return l.epoch
}

// remove reports whether the connection was that of the newest host.
func (l *clients) remove(c *conn) (wasHost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if wasHost = l.host == c; wasHost {
		l.host = nil
	}
	return wasHost
}

// isHost reports whether c is the newest host.
func (l *clients) isHost(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host == c
}

func (l *clients) hasHost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host != nil
}

// lend gives the lease, makes it longer, or takes it back.
func (l *clients) lend(lease Lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease.Holder != lease.Holder && time.Now().Before(l.leaseEnd) && (!lease.Steal || lease.For <= 0) {
		return errLent
	}
	l.lease, l.leaseEnd = lease, time.Now().Add(lease.For)
	return nil
}

func (l *clients) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

// doorbell says how long the journal is.
func (l *clients) doorbell() []byte {
	return frame(frameWake, 0, binary.LittleEndian.AppendUint64(nil, uint64(l.size())))
}

// ring tells every connection that the journal has grown. It never blocks.
func (l *clients) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) == 0 {
		return
	}
	bell := l.doorbell()
	for c := range l.conns {
		if c.write.TryLock() {
			n, err := c.TryWrite(bell)
			if 0 < n && n < len(bell) {
				_, err = c.Write(bell[n:])
			}
			c.write.Unlock()
			if n > 0 || err != nil {
				continue
			}
		}
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// serve carries out what one client asks until it is gone.
func (s *supervisor) serve(c *conn, launch bool) {
	defer c.Close()
	var hello Hello
	if launch {
		c.host = true
	} else {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		var err error
		if hello, err = readHello(c); err != nil || hello.Nonce != s.hello.Nonce {
			_, _ = c.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: code.Validation, Error: "wrong nonce"})))
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		c.host = hello.Host
	}
	s.mu.Lock()
	if launch {
		hello = s.hello
	}
	epoch := s.clients.add(c)
	if c.host {
		if !launch {
			s.hello.HostDir, s.hello.HostPID, s.hello.HostStart = hello.HostDir, hello.HostPID, hello.HostStart
		}
		if s.alone != nil {
			s.alone.Stop()
			s.alone = nil
		}
	}
	s.mu.Unlock()
	session := s.join(c, hello)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-c.wake:
				c.send(s.clients.doorbell())
			case <-stop:
				return
			}
		}
	}()
	c.send(frame(frameWelcome, 0, encode(Welcome{Version: Version, Epoch: epoch, Size: s.clients.size(), PID: s.cfg.Self.PID, Terminals: true})))
	for {
		t, id, body, err := readFrame(c)
		if err != nil {
			break
		}
		reply, heard := session.do(c, id, func() []byte { return replyBody(s.command(c, t, body)) })
		if !heard {
			break
		}
		if id != 0 {
			c.send(frame(frameReply, id, reply))
		}
	}
	close(stop)
	s.mu.Lock()
	wasHost := s.clients.remove(c)
	dead := s.hello
	s.mu.Unlock()
	if wasHost {
		s.hostGone(dead)
	}
}

// replyBody is the body of the reply to a command.
func replyBody(err error) []byte {
	if err == nil {
		return nil
	}
	remote, ok := errors.AsType[*RemoteError](err)
	if !ok {
		remote = &RemoteError{Code: code.Internal, Msg: err.Error()}
	}
	body := string(remote.Code) + "\x00" + remote.Msg
	if remote.Hint != "" {
		body += "\x00" + remote.Hint
	}
	return []byte(body)
}
