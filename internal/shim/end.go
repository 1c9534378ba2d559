package shim

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/pluginapi/code"
)

// stop ends the agent. What was asked is in the journal before anything is done;
// on a full disk it is done all the same.
func (s *supervisor) stop(stop Stop, kill bool) error {
	kind := code.InputStop
	if kill {
		kind = code.InputKill
	}
	record := journal.Encode(journal.Input{Kind: kind, By: stop.By, Text: string(stop.Reason)})
	s.mu.Lock()
	child := s.child
	over := child == nil || child.over
	if !over && s.reason == "" {
		s.reason = stop.Reason
	}
	s.mu.Unlock()
	if over && child != nil {
		if !child.spawn.Retry {
			return errNoChild
		}
		<-child.gone // its exit is in the journal already
	}
	if over {
		s.inputs.Lock()
		err := s.giveUp(child, stop.Reason, record)
		s.inputs.Unlock()
		if errors.Is(err, errNext) {
			return s.stop(stop, kill)
		}
		return err
	}
	s.recorder.tryAppend(journal.KindInput, record)
	if stop.Grace == 0 {
		stop.Grace = child.spawn.Grace
	}
	child.request(stopRequest{kill: kill, grace: stop.Grace})
	return nil
}

// supervise waits for the leader's end, or for somebody's wish, kills what the leader
// left, drains the output and only then writes the exit.
func (s *supervisor) supervise(child *child) {
	left, held := child.end()
	child.hangUp()
	drained := make(chan struct{})
	go func() { child.outputs.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTime):
		// Somebody outside the run holds the pipe open; it gets a broken one.
		for _, f := range child.files {
			_ = f.SetReadDeadline(time.Now())
		}
		<-drained
	}
	child.in.close()
	for _, path := range child.spawn.Collect {
		s.recorder.append(journal.KindCollected, journal.Encode(collect(path)))
	}
	s.mu.Lock()
	child.over = true // who asks for its end from here on comes too late, and is told so
	s.deadlines.end()
	exit := journal.Exit{Spawn: child.spawn.Number, Reason: s.reason, Killed: left, Survivors: strings.Join(held, "; ")}
	exit.Code, exit.Signal = child.ended()
	if s.recorder.gaveUp.Load() {
		exit.Reason = journal.ReasonDiskFull // whatever else was asked for: output is lost
		exit.Limit = s.recorder.limit.Load()
	}
	if exit.Reason == "" && s.signaled != "" && (asksForEnd[s.signaled] || exit.Signal == s.signaled) {
		exit.Reason = journal.ReasonSignal
	}
	s.mu.Unlock()
	record := journal.Encode(exit)
	s.exit.write(record)
	switch {
	case exit.Reason == journal.ReasonHostGone, exit.Reason == journal.ReasonCutOff:
		s.recorder.tryAppend(journal.KindExit, record) // who comes later reads the file
	case s.recorder.append(journal.KindExit, record): // the host waits for it
	case exit.Reason == "":
		exit.Reason, exit.Limit = journal.ReasonDiskFull, s.recorder.limit.Load()
		s.exit.write(journal.Encode(exit))
	}
	close(child.gone)
	if s.recorder.gaveUp.Load() {
		s.finish()
	}
	s.mu.Lock()
	alone := s.alone != nil
	if alone && s.session != nil { // its host may be about to come back
		alone = false
		s.alone.Reset(linkGrace)
	}
	s.mu.Unlock()
	if alone { // the journal says all that the next host must know
		s.endAlone(journal.ReasonHostGone)
		s.finish()
	}
}

// diskFull ends the run because the disk stayed full.
func (s *supervisor) diskFull() {
	s.mu.Lock()
	if s.reason == "" {
		s.reason = journal.ReasonDiskFull
	}
	child := s.child
	s.mu.Unlock()
	if child != nil {
		// Not waited for: the agent's end may wait for this output.
		go child.request(stopRequest{kill: true})
	}
}

// exitFile says how the agent ended. It has its room from the start, so that it can be
// written on a full disk.
type exitFile struct{ rawio.File }

func (f exitFile) write(record []byte) {
	_, _ = f.WriteAt(append(record[:len(record):len(record)], '\n'), 0)
}

// end returns when the leader and every descendant are gone. left is how many the
// leader had left behind when it ended by itself, held which could not be ended.
func (c *child) end() (left int, held []string) {
	var killAt <-chan time.Time
	kill := false
	for leader := true; leader && !kill; {
		select {
		case <-c.exited:
			leader = false
		case r := <-c.stop:
			if kill = r.kill; !kill {
				if !c.terminate() {
					kill = true
				} else if killAt == nil {
					killAt = time.After(r.grace)
				}
			}
		case <-killAt:
			kill = true
		}
	}
	if !kill {
		if left = c.tree.signal(); left > 0 && c.terminate() {
			deadline := time.NewTimer(leftoverGrace)
			defer deadline.Stop()
			for waiting := true; waiting && c.tree.signal() > 0; {
				select {
				case <-time.After(killPause):
				case <-deadline.C:
					waiting = false
				case r := <-c.stop:
					waiting = !r.kill
				}
			}
		}
	}
	return left, c.tree.kill(c.exited, c.stop)
}

// terminate asks the tree to end, and reports whether it can be asked.
func (c *child) terminate() bool {
	c.recorder.tryAppend(journal.KindSignal, journal.Encode(journal.Signal{Name: "SIGTERM", To: "tree"}))
	c.tree.asking.Lock()
	defer c.tree.asking.Unlock()
	return c.askToEnd()
}

func collect(path string) journal.Collected {
	f, err := foreign.Open(path, foreign.Rule{}) // the agent may have put a FIFO there
	if err != nil {
		return journal.Collected{Path: path, Absent: true}
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, collectLimit))
	if err != nil {
		return journal.Collected{Path: path, Absent: true}
	}
	return journal.Collected{Path: path, Content: content}
}
