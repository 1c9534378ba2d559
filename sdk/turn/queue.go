package turn

import "github.com/amux-dev/amux/sdk"

// queue has the prompts that the agent has not got yet. Most agents take one at a time:
// what comes while they are busy waits here, and stdin stays open until all has been said.
type queue struct {
	// Prompts counts those that the user gave.
	Prompts int

	ready, busy bool
	idle        bool // that the agent waits was said
	ending      bool // the user has asked for the end
	waiting     []Prompt
}

// Prompt is one of the user's.
type Prompt struct {
	ID   string
	Text []byte
}

// Prompted counts a prompt that is written at once: some agents take them at any time.
func (q *queue) Prompted() {
	q.Prompts++
	q.idle = false
}

// Enqueue takes a prompt of the user.
func (q *queue) Enqueue(id string, text []byte) {
	q.Prompted()
	q.waiting = append(q.waiting, Prompt{ID: id, Text: append([]byte(nil), text...)})
}

// Dequeue gives the next prompt, if the agent is ready for one; from then on it
// is busy.
func (q *queue) Dequeue() (Prompt, bool) {
	if q.busy {
		return Prompt{}, false
	}
	return q.Steer()
}

// Steer is Dequeue for an agent that takes prompts in the middle of a turn too.
func (q *queue) Steer() (Prompt, bool) {
	if !q.ready || len(q.waiting) == 0 {
		return Prompt{}, false
	}
	p := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.busy = true
	return p, true
}

// Ready says that the agent takes prompts.
func (q *queue) Ready() { q.ready = true }

// Busy reports whether a prompt is being worked on.
func (q *queue) Busy() bool { return q.busy }

// Done says that the agent has finished with its prompt.
func (q *queue) Done() { q.busy = false }

// Settle says that the agent is idle if nothing will make it speak any more, and
// then closes stdin if the user has asked for the end.
func (b *Base) Settle(out *sdk.Out) {
	if b.busy || b.InTurn() || len(b.waiting) > 0 {
		return
	}
	if b.ended > 0 {
		b.Idle(out)
	}
	if b.ending {
		b.CloseStdin(out)
	}
}
