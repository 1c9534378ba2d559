package sdk

import (
	"runtime/debug"
	"sync"
	"time"
)

// A plugin's heap is small and its garbage is much, so to collect it seldom saves
// a good part of the plugin's CPU. While a run holds a huge line, or a store of
// sessions is read, this would cost several times what is held, so then it is collected
// at Go's usual pace. And when all runs have been quiet for a moment, what is left of their work is given back.
const (
	seldom = 400
	usual  = 100

	quiet = time.Second
	much  = 1 << 20 // bytes of input that leave enough behind to be worth it
)

// memory sets the pace of a process of our own. The zero value leaves it alone.
type memory struct {
	mu   sync.Mutex
	ours bool
	runs int // that hold a huge line, and readings of sessions

	work  int // bytes of input since memory was given back
	seen  int // work when the timer was set
	timer *time.Timer
	armed bool
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

// worked is told of each batch.
func (m *memory) worked(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work += bytes
	if m.ours && !m.armed && m.work >= much {
		m.arm()
	}
}

func (m *memory) arm() {
	m.armed, m.seen = true, m.work
	if m.timer == nil {
		m.timer = time.AfterFunc(quiet, m.look)
	} else {
		m.timer.Reset(quiet)
	}
}

// look gives memory back if nothing has happened since the timer was set.
func (m *memory) look() {
	m.mu.Lock()
	rest := m.work == m.seen
	if rest {
		m.armed, m.work = false, 0
	} else {
		m.arm()
	}
	m.mu.Unlock()
	if rest {
		debug.FreeOSMemory()
	}
}
