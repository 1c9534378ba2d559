package host

import (
	"context"
	"iter"

	"github.com/amux-dev/amux/host/internal/follow"
	"github.com/amux-dev/amux/host/shim"
)

// TerminalPiece is the next thing that became of a run's terminal; one of its
// fields is set.
type TerminalPiece struct {
	// Output is what the agent printed, control sequences and all. It is valid
	// until the next piece.
	Output []byte
	// Cols and Rows are the terminal's new size.
	Cols, Rows int
	// Opened says that this is the size of a new terminal: nothing that was
	// printed before is on it.
	Opened bool
	// Current says that what was told so far is all there is now.
	Current bool
}

// Terminal yields what the agent has printed on its pseudo-terminal, from the
// start, and the sizes that it had. With live it goes on until the run has
// ended; else it ends with what there is. Each call has a cursor of its own. The
// error, if any, is the last pair: CAPABILITY_ERROR if the agent has no terminal.
// Of a run that is being started it is waited, for a while, whether there will be
// one.
func (r *Run) Terminal(ctx context.Context, live bool) iter.Seq2[TerminalPiece, error] {
	return func(yield func(TerminalPiece, error) bool) {
		gone := false
		err := r.followed().Terminal(ctx, live, func(p follow.Piece) bool {
			gone = !yield(TerminalPiece(p), nil)
			return !gone
		})
		if err != nil && !gone {
			yield(TerminalPiece{}, err)
		}
	}
}

// Keys types on the run's terminal, as a person does: "\x03" is Ctrl-C. What is
// typed is recorded nowhere, only how much.
func (r *Run) Keys(ctx context.Context, keys []byte) error {
	if len(keys) > maxPrompt {
		return invalid("the keys are more than %d MiB", maxPrompt>>20)
	}
	return r.backend.command("type on the terminal of", func(c *shim.Conn) error { return c.Keys(keys) })
}

// Resize gives the run's terminal another size.
func (r *Run) Resize(ctx context.Context, cols, rows int) error {
	return r.backend.command("resize the terminal of", func(c *shim.Conn) error { return c.Resize(shim.Size{Cols: cols, Rows: rows}) })
}

// onTerminal reports whether the run has a terminal.
func (r *Run) onTerminal(ctx context.Context) bool {
	for _, err := range r.Terminal(ctx, false) {
		return err == nil
	}
	return false
}
