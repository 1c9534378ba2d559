package engine

// fifo is a queue that keeps its room: a run takes one thing into it and out of it for each
// line.
type fifo[T any] struct {
	all   []T
	first int // of all
}

// idleRoom is how many things a queue that is nearly empty has room for.
const idleRoom = 32

func (q *fifo[T]) len() int { return len(q.all) - q.first }

// at is the i-th from the front.
func (q *fifo[T]) at(i int) T { return q.all[q.first+i] }

func (q *fifo[T]) add(more ...T) {
	if len(q.all)+len(more) > cap(q.all) && q.first >= len(q.all)/2 {
		rest := q.all[q.first:]
		if len(rest)+len(more) <= idleRoom && cap(q.all) > idleRoom {
			q.all = nil // what a flood needed goes
		}
		q.all, q.first = append(q.all[:0], rest...), 0
	}
	q.all = append(q.all, more...)
}

// drop takes away the front.
func (q *fifo[T]) drop() { q.first++ }
