package sdk

import (
	"runtime/debug"
	"sync"
)

// A plugin's heap is small and its garbage is much, so to collect it seldom saves
// a good part of the plugin's CPU. While a run holds a huge line this would cost
// several times the line, so then it is collected at Go's usual pace.
const (
	seldom = 400
	usual  = 100
)

// memory sets the pace of a process of our own. The zero value leaves it alone.
type memory struct {
	mu   sync.Mutex
	ours bool
	runs int // that hold a huge line
}

func (m *memory) own() {
	m.ours = true
	debug.SetGCPercent(seldom)
}

func (m *memory) heavy() { m.count(1) }
func (m *memory) light() { m.count(-1) }

func (m *memory) count(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs += by
	switch {
	case !m.ours:
	case m.runs == 0:
		debug.SetGCPercent(seldom)
	case m.runs == 1 && by > 0:
		debug.SetGCPercent(usual)
	}
}
