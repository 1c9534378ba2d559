package host

import (
	"slices"
	"sync"
)

// Queue lets so many runs go on at a time; those that come later wait, and begin in
// the order in which they came. Hosts may share one. The methods of a nil Queue let
// everything go on.
type Queue struct {
	mu      sync.Mutex
	places  int
	taken   int
	waiting []*slot
}

// NewQueue makes a queue with that many places, at least one.
func NewQueue(places int) *Queue { return &Queue{places: max(places, 1)} }

// Waiting is how many runs wait for their turn.
func (q *Queue) Waiting() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// slot is the place of one run in a queue, from when it asks for one until it leaves.
type slot struct {
	queue *Queue
	ready chan struct{} // closed when it is the run's turn
	once  sync.Once
}

// take asks for a place.
func (q *Queue) take() *slot {
	p := &slot{queue: q, ready: make(chan struct{})}
	if q == nil {
		close(p.ready)
		return p
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	q.advance()
	return p
}

// takeNow takes a place for a run that goes on already, whether there is one or not.
func (q *Queue) takeNow() *slot {
	p := &slot{queue: q, ready: make(chan struct{})}
	close(p.ready)
	if q != nil {
		q.mu.Lock()
		q.taken++
		q.mu.Unlock()
	}
	return p
}

// advance lets runs begin for which there is a place. It is called with mu held.
func (q *Queue) advance() {
	for ; q.taken < q.places && len(q.waiting) > 0; q.waiting = q.waiting[1:] {
		q.taken++
		close(q.waiting[0].ready)
	}
}

// waits reports whether it is not the run's turn yet.
func (p *slot) waits() bool { return !isClosed(p.ready) }

// leave gives the place to the next, or goes without having had one. It may be
// repeated.
func (p *slot) leave() {
	q := p.queue
	if q == nil {
		return
	}
	p.once.Do(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if i := slices.Index(q.waiting, p); i >= 0 {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return
		}
		q.taken--
		q.advance()
	})
}
