package plugins

import "sync"

// joint lets callers that want the same work at the same time share one run of it: a walk through
// all processes, for example.
type joint struct {
	mu   sync.Mutex
	busy bool
	next chan struct{} // closed when what begins next has ended; nil: nobody waits for that
}

// do returns when f, of this caller or another, has begun and ended after the call.
func (j *joint) do(f func()) {
	j.mu.Lock()
	if j.busy {
		if j.next == nil {
			j.next = make(chan struct{})
		}
		next := j.next
		j.mu.Unlock()
		<-next
		return
	}
	j.busy = true
	j.mu.Unlock()
	f()
	j.pass(f)
}

// pass does it once more if somebody has asked for it meanwhile, without keeping its caller.
func (j *joint) pass(f func()) {
	j.mu.Lock()
	next := j.next
	j.next, j.busy = nil, next != nil
	j.mu.Unlock()
	if next != nil {
		go func() {
			f()
			close(next)
			j.pass(f)
		}()
	}
}
