package sdk

import (
	"os"
	"runtime"
	"sync"
)

// processors has a plugin that converses about one run use one processor: it handles the lines of a run one
// after the other, and with more each would wake a thread to find nothing to do, which is 5 to 10 % of a line's delay.
type processors struct {
	mu   sync.Mutex
	runs int
	all  int // how many there are; 0: not ours to choose
}

// own takes over those of this process.
func (p *processors) own() {
	if os.Getenv("GOMAXPROCS") == "" {
		p.all = runtime.GOMAXPROCS(0)
	}
}

func (p *processors) begin() { p.count(1) }
func (p *processors) end()   { p.count(-1) }

func (p *processors) count(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs += by
	if p.all == 0 {
		return
	}
	want := p.all
	if p.runs == 1 {
		want = 1
	}
	if runtime.GOMAXPROCS(0) != want { // to set it stops all goroutines for a moment
		runtime.GOMAXPROCS(want)
	}
}
