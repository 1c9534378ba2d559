package shim

import (
	"io"
	"sync"
)

// newChild is a child that was just started; its files and input are yet to come.
func newChild(spawn Spawn, pid int) *child {
	c := &child{
		spawn: spawn, pid: pid, in: &stdin{},
		exited: make(chan struct{}), gone: make(chan struct{}), stop: make(chan stopRequest),
	}
	c.in.ready = sync.NewCond(&c.in.mu)
	c.spawn.Initial, c.spawn.Env = nil, nil // secrets are kept no longer than needed
	return c
}

// stdin is the bounded queue in front of the agent's stdin.
type stdin struct {
	file io.WriteCloser

	mu     sync.Mutex
	ready  *sync.Cond
	queue  [][]byte
	size   int
	closed bool // no more writes; close when the queue is empty
	ended  bool // the pipe is closed
}

func (s *stdin) write(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ended {
		return errNoStdin
	}
	if s.size+len(data) > StdinLimit {
		return errStdinFull
	}
	s.queue = append(s.queue, data)
	s.size += len(data)
	s.ready.Signal()
	return nil
}

// waiting is how much nobody has read yet.
func (s *stdin) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

func (s *stdin) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.ready.Signal()
}

// copy writes the queue to the pipe until it is closed or nobody reads.
func (s *stdin) copy() {
	defer s.file.Close()
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.ready.Wait()
		}
		if len(s.queue) == 0 {
			s.ended = true
			s.mu.Unlock()
			return
		}
		data := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.mu.Unlock()
		_, err := s.file.Write(data)
		s.mu.Lock()
		s.size -= len(data)
		if err != nil {
			s.queue, s.ended = nil, true
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}
