package shim

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/host/journal"
)

// child is one spawned process and what became of it.
type child struct {
	spawn   Spawn
	pid     int
	in      *stdin
	outputs sync.WaitGroup
	files   []*os.File
	status  syscall.WaitStatus
	exited  chan struct{} // the leader was reaped
	over    bool          // why it ended is settled; guarded by the keeper's mu
	gone    chan struct{} // its exit is in the journal
	stop    chan stopRequest

	terminal *terminal // nil if it has pipes
}

type stopRequest struct {
	kill  bool
	grace time.Duration
}

func (k *keeper) spawn(spawn Spawn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending || k.reason != "" {
		return errNoChild
	}
	if k.child != nil {
		select {
		case <-k.child.gone:
		default:
			return &RemoteError{"INVALID_STATE_TRANSITION", "the agent is already running"}
		}
	}
	var child *child
	var outputs [2]*os.File
	var err error
	if spawn.Terminal == nil {
		child, outputs, err = k.start(spawn)
	} else {
		child, err = k.startTerminal(spawn)
	}
	if err != nil {
		record := journal.SpawnFailed{Spawn: spawn.Number, Error: err.Error()}
		if k.journal.Append(journal.KindSpawnFailed, journal.Encode(record)) != nil {
			return errDiskFull
		}
		go k.ring()
		if refused, ok := errors.AsType[*RemoteError](err); ok {
			return refused
		}
		return &RemoteError{"SPAWN_ERROR", err.Error()}
	}
	k.child = child
	k.answered, k.signaled, k.ended, k.paused = map[string]bool{}, "", false, false
	record := journal.Spawned{Spawn: spawn.Number, PID: child.pid, StartTime: k.cfg.Tree.Start(child.pid)}
	// Before any output, and while mu keeps the exit away.
	if err := k.journal.Append(journal.KindSpawned, journal.Encode(record)); err != nil {
		k.reason = "disk_full"
		defer child.request(stopRequest{kill: true})
	}
	if child.terminal != nil {
		opened := journal.Terminal{Kind: "open", Cols: spawn.Terminal.Cols, Rows: spawn.Terminal.Rows}
		_ = k.journal.Append(journal.KindTerminal, journal.Encode(opened)) // on a full disk the output waits, and this is no worse
		child.outputs.Add(1)
		go k.copyTerminal(child)
	} else {
		child.outputs.Add(2)
		go k.copyOutput(child, outputs[0], journal.KindStdout, 64<<10)
		go k.copyOutput(child, outputs[1], journal.KindStderr, 16<<10)
	}
	for _, limit := range spawn.Limits {
		k.armLocked(limit)
	}
	if spawn.ParentPID != 0 {
		go k.watchParent(child)
	}
	go k.see(child)
	go k.ring()
	return nil
}

// parentEvery is how often a process is looked at whose end ends the run.
const parentEvery = 200 * time.Millisecond

// watchParent stops the agent when that process is gone, or another has its pid.
func (k *keeper) watchParent(child *child) {
	for k.cfg.Tree.Start(child.spawn.ParentPID) == child.spawn.ParentStart {
		select {
		case <-time.After(parentEvery):
		case <-child.gone:
			return
		}
	}
	_ = k.stop(Stop{Reason: "parent_gone", By: "shim"}, false) // it may just have ended
}

// signal signals the whole tree and says how many there are.
func (k *keeper) signal(signals ...syscall.Signal) int {
	return k.look(func() int { return k.cfg.Tree.Signal(signals...) })
}

// look walks through the tree.
func (k *keeper) look(walk func() int) int {
	k.walk.Lock()
	defer k.walk.Unlock()
	k.walked = true
	return walk()
}

// reaped takes in that a child of this process has ended. walk is held.
func (k *keeper) reaped(pid int, status syscall.WaitStatus) {
	k.mu.Lock()
	if c := k.child; c != nil && c.pid == pid && !isClosed(c.exited) {
		c.status = status
		close(c.exited)
	}
	k.mu.Unlock()
	select {
	case k.deaths <- struct{}{}:
	default:
	}
}

func (c *child) request(r stopRequest) {
	select {
	case c.stop <- r:
	case <-c.gone:
	}
}
