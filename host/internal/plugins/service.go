package plugins

import (
	"cmp"
	"context"
	"sync"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/registry"
)

// Service is the plugin of one run, and its processes. It is for one goroutine.
type Service struct {
	Pool     *Pool
	Verified registry.Verified
	Shared   *adapter.Process // that it begins with; nil until one is needed
	own      *adapter.Process // the run's own, after the shared one failed it
}

// Converse begins a conversation: with the shared process, or with a new one of the
// run's own.
func (s *Service) Converse(ctx context.Context, own bool) (reading engine.Reading, err error) {
	switch {
	case own:
		s.End()
		if s.own, err = s.Pool.start(ctx, s.Verified, func() {}); err == nil {
			if _, err = s.own.Described(ctx); err != nil {
				s.End()
			}
		}
	case s.Shared == nil:
		if s.Verified.Path == "" { // of a run that another host has begun
			if s.Verified.Path, err = s.Pool.Pinned(s.Verified.SHA256); err != nil {
				return reading, err
			}
		}
		s.Shared, err = s.Pool.Get(ctx, s.Verified)
	}
	if err != nil {
		return reading, err
	}
	process := cmp.Or(s.own, s.Shared)
	s.Pool.count(process, 1)
	ctx, cancel := context.WithCancel(ctx)
	leave := sync.OnceFunc(func() {
		cancel()
		s.Pool.count(process, -1)
	})
	conv, err := process.Converse(ctx)
	if err != nil {
		leave()
		return reading, err
	}
	return engine.Reading{Conversation: conv, Leave: leave}, nil
}

// Hangs notes that the process in use hangs.
func (s *Service) Hangs() {
	if s.own == nil {
		s.Pool.retire(s.Shared)
	}
}

// Memory is how many bytes the process in use holds.
func (s *Service) Memory() int64 { return cmp.Or(s.own, s.Shared).Memory() }

// End ends the run's own process, if there is one.
func (s *Service) End() {
	if s.own != nil {
		s.Pool.drop(s.own)
		s.own = nil
	}
}
