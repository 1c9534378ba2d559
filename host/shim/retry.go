package shim

import (
	"errors"

	"github.com/amux-dev/amux/host/journal"
)

// between reports that an attempt has ended and that another may follow.
func (k *keeper) between(child *child) bool { return child.spawn.Retry && isClosed(child.gone) }

// retry commits that another attempt follows, unless somebody has asked for the end
// of the run.
func (k *keeper) retry(c *conn, payload []byte) error {
	if !k.isHost(c) {
		return errNotHost
	}
	k.mu.Lock()
	child := k.child
	k.mu.Unlock()
	if child == nil {
		return errNoChild
	}
	<-child.gone // its exit is in the journal already
	k.inputs.Lock()
	defer k.inputs.Unlock()
	k.mu.Lock()
	late := k.ending || k.reason != ""
	k.mu.Unlock()
	if late {
		return errNoChild
	}
	if !k.append(journal.KindRetry, payload) {
		return errDiskFull
	}
	return nil
}

// errNext says that the next attempt has been started meanwhile.
var errNext = errors.New("the agent was started again")

// giveUp keeps the process from being started that may follow child, or is the first
// if that is nil. It is called
// with inputs held, so that the record stands on one side of the next Retry.
func (k *keeper) giveUp(child *child, reason string, record []byte) error {
	k.mu.Lock()
	again, late := k.gaveUp, k.ending || k.reason != ""
	next := k.child != child
	if !next && !late {
		k.reason, k.gaveUp = reason, true
	}
	k.mu.Unlock()
	switch {
	case next:
		return errNext
	case again:
		return nil
	case late:
		return errNoChild
	}
	k.tryAppend(journal.KindInput, record)
	return nil
}
