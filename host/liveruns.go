package host

import (
	"maps"
	"slices"
	"sync"
)

// liveRuns are the runs that a host hosts now. The zero value has none.
type liveRuns struct {
	mu   sync.Mutex
	byID map[string]*hosted
}

func (l *liveRuns) add(r *hosted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]*hosted{}
	}
	l.byID[r.id()] = r
}

func (l *liveRuns) remove(r *hosted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, r.id())
}

// get returns a run, or nil if this host has no such run.
func (l *liveRuns) get(id string) *hosted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

func (l *liveRuns) has(id string) bool { return l.get(id) != nil }

func (l *liveRuns) all() []*hosted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.byID))
}
