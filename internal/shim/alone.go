package shim

import (
	"os"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// hostGone is what the run does without a host: a foreground one ends at once,
// a detached one goes on for a while, if it has an agent.
func (s *supervisor) hostGone(dead Hello) {
	s.mu.Lock()
	idle := s.child == nil || isClosed(s.child.gone)
	alone, reason := s.hello.Alone, journal.ReasonHostGone
	if s.session != nil { // the host may be there, and its connection has broken
		reason = journal.ReasonCutOff
		if idle {
			idle, alone = false, linkGrace
		}
	}
	if !s.hello.Detached || idle {
		s.mu.Unlock()
		s.endAlone(reason)
		clearHost(dead, s.tree.lives)
		s.finish()
		return
	}
	if s.clients.hasHost() { // a new one was quicker
		s.mu.Unlock()
		return
	}
	if s.alone == nil {
		s.alone = time.AfterFunc(alone, func() { s.endAlone(reason); s.finish() })
	}
	s.mu.Unlock()
	clearHost(dead, s.tree.lives)
}

func (t *tree) lives(pid int, start uint64) bool { return t.processes.Start(pid) == start }

// clearHost removes what a host has left that has died. Its connection ends a moment before its
// process. A host of a thousand runs has as many shims that look here, and would need seconds to
// die if they all looked every millisecond.
func clearHost(dead Hello, lives func(pid int, start uint64) bool) {
	if dead.HostDir == "" {
		return
	}
	for pause := time.Millisecond; pause <= longestLook; pause *= 2 {
		if !lives(dead.HostPID, dead.HostStart) {
			_ = os.RemoveAll(dead.HostDir)
			return
		}
		time.Sleep(pause)
	}
}

const longestLook = 256 * time.Millisecond // the last pause between two looks at a host that is dying

// endAlone ends everything without anybody to tell. The shim may leave then.
func (s *supervisor) endAlone(reason journal.EndReason) {
	s.mu.Lock()
	child := s.child
	s.mu.Unlock()
	if child == nil || child.between() {
		// Without this record it would look as if the shim had been killed while it started
		// the agent.
		s.inputs.Lock()
		_ = s.giveUp(child, reason, journal.Encode(journal.Input{Kind: code.InputKill, By: "shim", Text: string(reason)})) // somebody may have been first
		s.inputs.Unlock()
	}
	s.mu.Lock()
	s.ending = true
	child = s.child
	if s.reason == "" {
		s.reason = reason
	}
	s.mu.Unlock()
	if child != nil {
		child.request(stopRequest{kill: true})
		<-child.gone
	}
	if s.hello.TempDir != "" {
		_ = os.RemoveAll(s.hello.TempDir)
	}
}
