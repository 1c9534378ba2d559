package host

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
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
// start, and the sizes that it had. With follow it goes on until the run has
// ended; else it ends with what there is. Each call has a cursor of its own. The
// error, if any, is the last pair: CAPABILITY_ERROR if the agent has no terminal.
// Of a run that is being started it is waited, for a while, whether there will be
// one.
func (r *Run) Terminal(ctx context.Context, follow bool) iter.Seq2[TerminalPiece, error] {
	return func(yield func(TerminalPiece, error) bool) {
		w := &watcher{r: r.recorded}
		defer w.close()
		if err := w.watch(ctx, follow, yield); err != nil {
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

// watchPause is how long a watcher waits at most before it looks again.
const watchPause = time.Second

// watcher reads the journal of a run, whoever writes it.
type watcher struct {
	r    *recorded
	file *os.File
	conn *shim.Conn // nil: no shim rings
}

var errConsumerGone = errors.New("the consumer has gone")

func (w *watcher) close() {
	if w.file != nil {
		w.file.Close()
	}
	if w.conn != nil {
		w.conn.Close()
	}
}

// watch yields pieces until the journal ends. An error is for the consumer.
func (w *watcher) watch(ctx context.Context, follow bool, yield func(TerminalPiece, error) bool) error {
	err := w.pieces(ctx, follow, func(p TerminalPiece) error {
		if !yield(p, nil) {
			return errConsumerGone
		}
		return nil
	})
	if errors.Is(err, errConsumerGone) {
		return nil
	}
	return err
}

func (w *watcher) pieces(ctx context.Context, follow bool, yield func(TerminalPiece) error) error {
	path := w.r.dir.Path("journal")
	file, err := os.Open(path)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", w.r.id(), fault.Plain(err))
	}
	w.file = file
	reader, err := journal.NewReader(file)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", w.r.id(), err)
	}
	planned, current := false, false
	deadline := time.Now().Add(commandWait)
	for first := true; ; first = false {
		over := (follow || !first) && !w.ring(ctx)
		info, err := file.Stat()
		if err != nil {
			return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", w.r.id(), fault.Plain(err))
		}
		for {
			rec, err := reader.Next(info.Size())
			if errors.Is(err, io.EOF) || errors.Is(err, journal.ErrTorn) { // the rest is being written
				break
			}
			if err != nil {
				return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", w.r.id(), err)
			}
			switch rec.Kind {
			case journal.KindPlan:
				var plan journal.Plan
				if err := rec.Decode(&plan); err != nil || !plan.PTY {
					return noTerminal(w.r)
				}
				planned = true
			case journal.KindTerminal:
				var t journal.Terminal
				if err := rec.Decode(&t); err != nil || t.Kind != "open" && t.Kind != "resize" {
					continue
				}
				if err := yield(TerminalPiece{Cols: t.Cols, Rows: t.Rows, Opened: t.Kind == "open"}); err != nil {
					return err
				}
			case journal.KindStdout:
				if err := yield(TerminalPiece{Output: rec.Payload}); err != nil {
					return err
				}
			case journal.KindState:
				var s journal.State
				over = over || rec.Decode(&s) == nil && engine.Terminal(s.To)
			}
		}
		if planned && !current {
			current = true
			if err := yield(TerminalPiece{Current: true}); err != nil {
				return err
			}
		}
		switch {
		case planned && (over || !follow):
			return nil
		case over:
			return noTerminal(w.r)
		case !follow && time.Now().After(deadline):
			return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s is being started", w.r.id()).WithHint("try again in a moment")
		}
		reader.Release()
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

func noTerminal(r *recorded) error {
	return pluginapi.Errorf(pluginapi.CodeCapability, "run %s has no terminal", r.id()).
		WithHint("agents that can have one get it by: amux run --pty")
}

// ring sees that the shim rings, and reports whether one lives that could.
func (w *watcher) ring(ctx context.Context) bool {
	if w.conn != nil && isClosed(w.conn.Gone()) {
		w.conn.Close()
		w.conn = nil
	}
	if w.conn == nil {
		shimInfo, err := shim.ReadInfo(w.r.dir.Dir)
		if err != nil || !shimLives(shimInfo) {
			return w.r.dir.Held() // it is being started, or its end is being told
		}
		w.conn, _ = w.r.h.edges.dial.Dial(ctx, shimInfo) // the clock alone will do
	}
	return true
}

func (w *watcher) wait(ctx context.Context) error {
	var wake <-chan struct{}
	var gone <-chan struct{}
	pause := 10 * time.Millisecond
	if w.conn != nil {
		wake, gone, pause = w.conn.Wake(), w.conn.Gone(), watchPause
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-wake:
	case <-gone:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
