//go:build unix

package shim

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// start forks and execs the agent with pipes, in a session of its own. The
// keeper's ends do not block, so that the runtime's poller waits for them and
// not a thread each.
func start(spawn Spawn) (_ *child, outputs [2]*os.File, retErr error) {
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if retErr != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	pipe := func(write bool) (*os.File, error) {
		var p [2]int
		if err := cloexecPipe(&p); err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		keep, give := p[0], p[1]
		if write {
			keep, give = give, keep
		}
		if err := unix.SetNonblock(keep, true); err != nil {
			return nil, err
		}
		ours = append(ours, os.NewFile(uintptr(keep), "pipe"))
		theirs = append(theirs, os.NewFile(uintptr(give), "pipe"))
		return theirs[len(theirs)-1], nil
	}
	var files [3]uintptr
	if spawn.Stdin {
		f, err := pipe(true)
		if err != nil {
			return nil, outputs, err
		}
		files[0] = f.Fd()
	} else {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, outputs, err
		}
		theirs = append(theirs, null)
		files[0] = null.Fd()
	}
	for i := range 2 {
		f, err := pipe(false)
		if err != nil {
			return nil, outputs, err
		}
		files[i+1] = f.Fd()
		outputs[i] = ours[len(ours)-1]
	}
	if spawn.Umask != nil {
		unix.Umask(*spawn.Umask) // what this process makes itself has its mode by name
	}
	argv := append([]string{spawn.Program}, spawn.Args...)
	pid, err := syscall.ForkExec(spawn.Program, argv, &syscall.ProcAttr{
		Dir: spawn.Cwd, Env: spawn.Env, Files: files[:], Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, outputs, fmt.Errorf("start %s: %w", spawn.Program, err)
	}
	c := newChild(spawn, pid)
	c.files = outputs[:]
	if !spawn.Stdin {
		c.in.ended = true
		return c, outputs, nil
	}
	c.in.file = ours[0]
	go c.in.copy()
	if len(spawn.Initial) > 0 {
		if err := c.in.write(spawn.Initial); err != nil {
			c.in.close()
		}
	}
	if spawn.Close {
		c.in.close()
	}
	return c, outputs, nil
}

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
	file *os.File

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
