package turn

import "github.com/amux-dev/amux/sdk"

// Prompt is one of the user's.
type Prompt struct {
	ID   string
	Text []byte
}

// Most agents take one prompt at a time: what comes while they are busy waits
// here, and stdin stays open until all has been said.

// Enqueue takes a prompt of the user.
func (b *Base) Enqueue(id string, text []byte) {
	b.Prompts++
	b.idle = false
	b.waiting = append(b.waiting, Prompt{ID: id, Text: append([]byte(nil), text...)})
}

// Dequeue gives the next prompt, if the agent is ready for one; from then on it
// is busy.
func (b *Base) Dequeue() (Prompt, bool) {
	if !b.ready || b.busy || len(b.waiting) == 0 {
		return Prompt{}, false
	}
	p := b.waiting[0]
	b.waiting = b.waiting[1:]
	b.busy = true
	return p, true
}

// Ready says that the agent takes prompts.
func (b *Base) Ready() { b.ready = true }

// Busy reports whether a prompt is being worked on.
func (b *Base) Busy() bool { return b.busy }

// Done says that the agent has finished with its prompt.
func (b *Base) Done() { b.busy = false }

// Settle says that the agent is idle if nothing will make it speak any more, and
// then closes stdin if the user has asked for the end.
func (b *Base) Settle(out *sdk.Out) {
	if b.busy || len(b.waiting) > 0 {
		return
	}
	if b.ended > 0 {
		b.Idle(out)
	}
	if b.ending {
		b.CloseStdin(out)
	}
}
