package shim

import (
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// pause stops or continues every process of the tree.
func (s *supervisor) pause(on bool, by string) error {
	s.mu.Lock()
	child, already := s.child, s.deadlines.paused == on
	running := child != nil && !child.between()
	if running {
		s.deadlines.paused = on
		s.deadlines.restartIdle()
	}
	s.mu.Unlock()
	if !running {
		return errNoChild
	}
	if already {
		return nil
	}
	kind := code.InputResume
	if on {
		kind = code.InputPause
	}
	s.recorder.append(journal.KindInput, journal.Encode(journal.Input{Kind: kind, By: by}))
	if !s.tree.pause(on, func() bool { return s.wantsPause(on) }) {
		return &RemoteError{Code: "INTERNAL", Msg: kind + " reaches most processes of the run, but more are started all the time"}
	}
	return nil
}

// wantsPause reports whether nobody has asked for something else since.
func (s *supervisor) wantsPause(on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadlines.paused == on && s.reason == "" && !s.ending
}
