package follow

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	watchPause = time.Second     // how long a watcher waits at most before it looks again
	startWait  = 5 * time.Second // for a run that is being started
)

// Piece is the next thing that became of a run's terminal; one of its fields is set.
type Piece struct {
	Output     []byte // valid until the next piece
	Cols, Rows int    // the new size
	Opened     bool   // it is that of a new terminal
	Current    bool   // what was told so far is all there is now
}

// watcher reads the journal of a run, whoever writes it.
type watcher struct {
	Run
	file *record.File
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

// Terminal yields what has become of the run's terminal, from the start: until the run
// has ended, or what there is now. Of a run that is being started it waits a moment.
func (r Run) Terminal(ctx context.Context, follow bool, yield func(Piece) bool) error {
	w := &watcher{Run: r}
	defer w.close()
	err := w.pieces(ctx, follow, func(p Piece) error {
		if !yield(p) {
			return errConsumerGone
		}
		return nil
	})
	if errors.Is(err, errConsumerGone) {
		return nil
	}
	return err
}

func (w *watcher) pieces(ctx context.Context, follow bool, yield func(Piece) error) error {
	file, err := record.OpenJournal(w.Dir)
	if err != nil {
		return err
	}
	w.file = file
	reader, err := journal.NewReader(file)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", w.Dir.ID, err)
	}
	planned, current := false, false
	deadline := time.Now().Add(startWait)
	for first := true; ; first = false {
		over := (follow || !first) && !w.ring(ctx)
		if err := file.Grown(); err != nil {
			return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", w.Dir.ID, fault.Plain(err))
		}
		for {
			rec, err := reader.Next(file.Committed())
			if errors.Is(err, io.EOF) || errors.Is(err, journal.ErrTorn) { // the rest is being written
				break
			}
			if err != nil {
				return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", w.Dir.ID, err)
			}
			switch rec.Kind {
			case journal.KindPlan:
				var plan journal.Plan
				if err := rec.Decode(&plan); err != nil || !plan.PTY {
					return noTerminal(w.Dir.ID)
				}
				planned = true
			case journal.KindTerminal:
				var t journal.Terminal
				if err := rec.Decode(&t); err != nil || t.Kind != "open" && t.Kind != "resize" {
					continue
				}
				if err := yield(Piece{Cols: t.Cols, Rows: t.Rows, Opened: t.Kind == "open"}); err != nil {
					return err
				}
			case journal.KindStdout:
				if err := yield(Piece{Output: rec.Payload}); err != nil {
					return err
				}
			case journal.KindState:
				var s journal.State
				over = over || rec.Decode(&s) == nil && engine.Terminal(s.To)
			}
		}
		if planned && !current {
			current = true
			if err := yield(Piece{Current: true}); err != nil {
				return err
			}
		}
		switch {
		case planned && (over || !follow):
			return nil
		case over:
			return noTerminal(w.Dir.ID)
		case !follow && time.Now().After(deadline):
			return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s is being started", w.Dir.ID).WithHint("try again in a moment")
		}
		reader.Release()
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

func noTerminal(id string) error {
	return pluginapi.Errorf(pluginapi.CodeCapability, "run %s has no terminal", id).
		WithHint("agents that can have one get it by: amux run --pty")
}

// ring sees that the shim rings, and reports whether one lives that could.
func (w *watcher) ring(ctx context.Context) bool {
	if w.conn != nil && w.conn.Left() {
		w.conn.Close()
		w.conn = nil
	}
	if w.conn == nil {
		shimInfo, lives := record.Shim(w.Dir)
		if !lives {
			return w.Dir.Held() // it is being started, or its end is being told
		}
		w.conn, _ = w.Dial.Dial(ctx, shimInfo) // the clock alone will do
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
