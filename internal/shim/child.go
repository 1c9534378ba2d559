package shim

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi/code"
)

// child is one spawned process and what became of it.
type child struct {
	spawn   Spawn
	pid     int
	in      *stdin
	outputs sync.WaitGroup
	files   []interface{ SetReadDeadline(time.Time) error }
	status  syscall.WaitStatus
	exited  chan struct{} // the leader was reaped
	over    bool          // why it ended is settled; guarded by the supervisor's mu
	gone    chan struct{} // its exit is in the journal
	stop    chan stopRequest

	terminal *terminal // nil if it has pipes

	tree     *tree
	recorder *recorder
	active   func() // is called when it has written something
}

type stopRequest struct {
	kill  bool
	grace time.Duration
}

func (s *supervisor) spawn(spawn Spawn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending || s.reason != "" {
		return errNoChild
	}
	if s.child != nil {
		select {
		case <-s.child.gone:
		default:
			return &RemoteError{Code: code.InvalidTransition, Msg: "the agent is already running"}
		}
	}
	var child *child
	var agent Agent
	var err error
	if spawn.Terminal != nil {
		child, err = s.startTerminal(spawn)
	} else if agent, err = s.cfg.Edges.Start(spawn); err == nil {
		child = agent.child(spawn)
	}
	if err != nil {
		refused, ok := errors.AsType[*RemoteError](err)
		if !ok {
			refused = cannotStart(spawn, err)
		}
		record := journal.SpawnFailed{Spawn: spawn.Number, Error: refused.Msg, Hint: refused.Hint}
		if s.recorder.journal.Append(journal.KindSpawnFailed, journal.Encode(record)) != nil {
			return errDiskFull
		}
		s.clients.ring()
		return refused
	}
	child.tree, child.recorder, child.active = &s.tree, &s.recorder, s.active
	s.child = child
	s.signaled, s.ended = "", false
	s.deadlines.begin()
	record := journal.Spawned{Spawn: spawn.Number, PID: child.pid, StartTime: s.tree.processes.Start(child.pid)}
	// Before any output, and while mu keeps the exit away.
	if err := s.recorder.journal.Append(journal.KindSpawned, journal.Encode(record)); err != nil {
		s.reason = journal.ReasonDiskFull
		defer child.request(stopRequest{kill: true})
	}
	if child.terminal != nil {
		opened := journal.Terminal{Kind: "open", Cols: spawn.Terminal.Cols, Rows: spawn.Terminal.Rows}
		_ = s.recorder.journal.Append(journal.KindTerminal, journal.Encode(opened)) // on a full disk the output waits, and this is no worse
		child.outputs.Add(1)
		go child.copyTerminal()
	} else {
		child.outputs.Add(2)
		go child.copyOutput(agent.Stdout, journal.KindStdout, 64<<10)
		go child.copyOutput(agent.Stderr, journal.KindStderr, 16<<10)
	}
	for _, limit := range spawn.Limits {
		s.deadlines.arm(limit)
	}
	if spawn.ParentPID != 0 {
		go child.watchParent(func() {
			_ = s.stop(Stop{Reason: journal.ReasonParentGone, By: "shim"}, false) // it may just have ended
		})
	}
	go s.supervise(child)
	s.clients.ring()
	return nil
}

// cannotStart says why the agent was not started.
func cannotStart(spawn Spawn, err error) *RemoteError {
	why, hint := fault.Start(spawn.Program, spawn.Cwd, err)
	return &RemoteError{code.Spawn, "cannot start " + spawn.Program + ": " + why, hint}
}

// child is an agent with pipes.
func (a Agent) child(spawn Spawn) *child {
	c := newChild(spawn, a.PID)
	c.files = append(c.files, a.Stdout, a.Stderr)
	if a.await != nil {
		go a.await(c)
	}
	if a.Stdin == nil {
		c.in.ended = true
		return c
	}
	c.in.file = a.Stdin
	go c.in.copy()
	if len(spawn.Initial) > 0 {
		if err := c.in.write(spawn.Initial); err != nil {
			c.in.close()
		}
	}
	if spawn.Close {
		c.in.close()
	}
	return c
}

// parentEvery is how often a process is looked at whose end ends the run.
const parentEvery = 200 * time.Millisecond

// copyOutput moves one stream of the agent into the journal until its end.
func (c *child) copyOutput(out Output, kind journal.Kind, size int) {
	defer c.outputs.Done()
	defer out.Close()
	c.recorder.copyOutput(out, kind, size, c.active)
}

// watchParent calls gone when that process is gone, or another has its pid.
func (c *child) watchParent(gone func()) {
	for c.tree.processes.Start(c.spawn.ParentPID) == c.spawn.ParentStart {
		select {
		case <-time.After(parentEvery):
		case <-c.gone:
			return
		}
	}
	gone()
}

// leaderEnded takes in that a process was reaped, which may be the agent's leader.
func (s *supervisor) leaderEnded(pid int, status syscall.WaitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.child; c != nil && c.pid == pid && !isClosed(c.exited) {
		c.status = status
		close(c.exited)
	}
}

func (c *child) request(r stopRequest) {
	select {
	case c.stop <- r:
	case <-c.gone:
	}
}
