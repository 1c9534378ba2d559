package sdk

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A plugin's heap is small and its garbage is much, so to collect it seldom saves
// a good part of the plugin's CPU. While a run holds a huge line, a store of sessions is
// read, or some of the heap lives long, this would cost several times what is held, so then
// it is collected at Go's usual pace; and more often while much lives. And when all runs
// have been quiet for a moment, what is left of their work is given back.
const (
	seldom = 400
	usual  = 100
	often  = 50

	some, large = 4 << 20, 16 << 20 // bytes alive

	quiet = time.Second
	much  = 1 << 20 // bytes of input that leave enough behind to be worth it
)

// memory sets the pace of a process of our own. The zero value leaves it alone.
type memory struct {
	mu   sync.Mutex
	ours bool
	runs int // that hold a huge line, and readings of sessions
	pace int // as last set

	paced int // work when the pace was chosen last

	work  int // bytes of input since memory was given back
	seen  int // work when the timer was set
	timer *time.Timer
	armed bool
}

func (m *memory) own() {
	m.ours = true
	m.choose()
}

// choose sets the pace by what is held.
func (m *memory) choose() {
	pace := seldom
	switch alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}; {
	case !m.ours:
		return
	case m.runs > 0:
		pace = usual
	default:
		metrics.Read(alive)
		switch {
		case alive[0].Value.Kind() != metrics.KindUint64 || alive[0].Value.Uint64() < some:
		case alive[0].Value.Uint64() < large:
			pace = usual
		default:
			pace = often
		}
	}
	if m.paced = m.work; m.pace != pace {
		m.pace = pace
		debug.SetGCPercent(pace)
	}
}

func (m *memory) heavy() { m.count(1) }
func (m *memory) light() { m.count(-1) }

func (m *memory) count(by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs += by
	m.choose()
}

// worked is told of each batch.
func (m *memory) worked(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work += bytes
	if m.work-m.paced >= much {
		m.choose()
	}
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
		m.armed, m.work, m.paced = false, 0, 0
	} else {
		m.arm()
	}
	m.mu.Unlock()
	if rest {
		debug.FreeOSMemory()
		m.count(0)
	}
}
