package shim

import (
	"errors"

	"github.com/amux-dev/amux/internal/journal"
)

// between reports that the attempt has ended and that another may follow.
func (c *child) between() bool { return c.spawn.Retry && isClosed(c.gone) }

// retry commits that another attempt follows, unless somebody has asked for the end
// of the run.
func (s *supervisor) retry(c *conn, payload []byte) error {
	if !s.clients.isHost(c) {
		return errNotHost
	}
	s.mu.Lock()
	child := s.child
	s.mu.Unlock()
	if child == nil {
		return errNoChild
	}
	<-child.gone // its exit is in the journal already
	s.inputs.Lock()
	defer s.inputs.Unlock()
	s.mu.Lock()
	late := s.ending || s.reason != ""
	s.deadlines.end() // the next attempt does not have the timers of the last
	s.mu.Unlock()
	if late {
		return errNoChild
	}
	if !s.recorder.append(journal.KindRetry, payload) {
		return errDiskFull
	}
	return nil
}

// errNext says that the next attempt has been started meanwhile.
var errNext = errors.New("the agent was started again")

// giveUp keeps the process from being started that may follow child, or is the first
// if that is nil. It is called
// with inputs held, so that the record stands on one side of the next Retry.
func (s *supervisor) giveUp(child *child, reason journal.EndReason, record []byte) error {
	s.mu.Lock()
	again, late := s.gaveUp, s.ending || s.reason != ""
	next := s.child != child
	if !next && !late {
		s.reason, s.gaveUp = reason, true
	}
	s.mu.Unlock()
	switch {
	case next:
		return errNext
	case again:
		return nil
	case late:
		return errNoChild
	}
	if !s.recorder.append(journal.KindInput, record) { // waits for room: without the record the run would wait for its agent
		s.exit.write(journal.Encode(journal.Exit{Code: -1, Reason: journal.ReasonDiskFull, Limit: s.recorder.limit.Load()}))
		s.finish()
		return errDiskFull
	}
	return nil
}
