package adapter

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a plugin may take for a chain of calls: its start and a plan,
// say, or a call that it answers with commands to run first. What the host does
// between the calls does not count, nor does the time for which the plugin's process
// was ready to run and got no CPU: a busy machine is not the plugin's fault. That adds
// at most twice the time.
type Patience struct {
	mu    sync.Mutex
	limit time.Duration
	left  time.Duration
	extra time.Duration // that may still be added
}

// NewPatience returns a Patience of a limit.
func NewPatience(limit time.Duration) *Patience {
	return &Patience{limit: limit, left: limit, extra: 2 * limit}
}

// Spend takes off what something took that this Patience did not bound. A little is
// always left for the next call.
func (p *Patience) Spend(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = max(p.left-took, p.limit/10)
}

// Over reports whether none is left.
func (p *Patience) Over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left <= 0
}

// atOnce is how long a call may take before anybody asks how long its process waits.
const atOnce = 20 * time.Millisecond

// during makes a call of the process pid, and reports whether the call was ended
// because it took too long.
func (p *Patience) during(ctx context.Context, pid int, call func(context.Context) error) (late bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	// Most calls end at once: to ask the system before would take as long as they do.
	since, soon := time.Now(), min(p.left/10, atOnce)
	timer := time.NewTimer(soon)
	defer timer.Stop()
	waited, granted := time.Duration(-1), time.Duration(0)
	for {
		select {
		case err := <-done:
			p.left -= max(time.Since(since)-granted, 0)
			return late, err
		case <-timer.C:
		}
		if waited < 0 {
			waited = waitedForCPU(pid)
			timer.Reset(p.left - soon)
			continue
		}
		more := min(waitedForCPU(pid)-waited-granted, p.extra)
		if more < p.limit/100 {
			late = true
			cancel() // and the call ends
			continue
		}
		granted += more
		p.extra -= more
		timer.Reset(more)
	}
}
