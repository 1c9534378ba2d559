package shim

import (
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/sys/slowlock"
)

// window is how many commands of a session may wait for their replies at a time.
const window = 64

// linkGrace is how long a detached run without an agent waits for a host that comes over
// connections which break: it may be about to start one, or to tell the end.
const linkGrace = time.Minute

// session is a host at the other end of connections that break. It numbers its commands
// upwards and sends those without a reply again: each is done once.
type session struct {
	id   string
	busy slowlock.Lock // held while a command is done

	mu      sync.Mutex
	conn    *conn // the newest: no other is heard
	last    uint32
	replies map[uint32][]byte // of the last commands, as many as may be asked for again
}

// join makes c the connection of the session that hello names, and ends the one before. nil:
// hello names none.
func (s *supervisor) join(c *conn, hello Hello) *session {
	if hello.Session == "" {
		return nil
	}
	s.mu.Lock()
	if s.session == nil || s.session.id != hello.Session {
		s.session = &session{id: hello.Session, busy: slowlock.New(), replies: map[uint32][]byte{}}
	}
	joined := s.session
	s.mu.Unlock()
	joined.mu.Lock()
	before := joined.conn
	joined.conn = c
	joined.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	return joined
}

// do has a command done, unless it was, and gives its reply. It reports false if the session
// goes on over another connection. Without a session a command is done as it comes.
func (n *session) do(c *conn, id uint32, command func() []byte) (reply []byte, heard bool) {
	if n == nil {
		return command(), true
	}
	n.busy.Lock()
	defer n.busy.Unlock()
	n.mu.Lock()
	current, old := n.conn == c, n.replies[id]
	done := id <= n.last
	n.mu.Unlock()
	if !current {
		return nil, false
	}
	if done {
		return old, true
	}
	reply = command()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = id
	n.replies[id] = reply
	for kept := range n.replies {
		if kept+window < id+1 {
			delete(n.replies, kept)
		}
	}
	return reply, true
}
