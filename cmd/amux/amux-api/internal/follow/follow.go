// Package follow reads the events of runs as they come, whoever hosts them, for what serves
// other programs.
package follow

import (
	"context"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Follower reads the events of the runs that a host shows. It may be used by many at once.
type Follower struct {
	app  *app.App
	host app.Host

	ask chan struct{} // one at a time asks for a host
}

// New makes one.
func New(a *app.App, h app.Host) *Follower {
	return &Follower{app: a, host: h, ask: make(chan struct{}, 1)}
}

// rescueTime bounds a look for another host of a run.
const rescueTime = 3 * time.Second

// Rescue finds a run that has lost its host another one, or records its end.
func (f *Follower) Rescue(ctx context.Context, id string) {
	select {
	case f.ask <- struct{}{}:
		defer func() { <-f.ask }()
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rescueTime)
	defer cancel()
	if orphan, err := f.host.RecoverRun(ctx, id); err == nil && orphan {
		_ = f.app.Server.FindHost(ctx, id) // who asked looks again
	}
}

// lines counts lines on their way.
type lines struct {
	seq  uint64 // of the last one
	take func(seq uint64, line []byte) error
	rest []byte // of a line that is not whole yet
}

// Write implements io.Writer for stored lines, each with its line break.
func (l *lines) Write(data []byte) (int, error) {
	n := len(data)
	for {
		end := -1
		for i, c := range data {
			if c == '\n' {
				end = i
				break
			}
		}
		if end < 0 {
			l.rest = append(l.rest, data...)
			return n, nil
		}
		line := data[:end]
		if len(l.rest) > 0 {
			l.rest = append(l.rest, line...)
			line = l.rest
		}
		l.seq++
		err := l.take(l.seq, line)
		l.rest, data = l.rest[:0], data[end+1:]
		if err != nil {
			return n, err
		}
	}
}

// Events calls take with the number and the stored line of each event, from a number on,
// until the run has ended. A line is valid until take returns. If the run's host dies, the
// rest comes from the record that another one makes, without a gap and without a repeat.
func (f *Follower) Events(ctx context.Context, id string, from uint64, take func(seq uint64, line []byte) error) error {
	var failed error
	to := &lines{seq: max(from, 1) - 1, take: func(seq uint64, line []byte) error {
		failed = take(seq, line)
		return failed
	}}
	var patience app.Patience
	for {
		r, err := f.host.Open(ctx, id)
		if err != nil {
			return err
		}
		if info := r.Info(); info.End != nil && to.seq >= info.Events {
			return nil
		}
		to.rest = to.rest[:0] // the half of a line is sent again
		err = r.CopyEvents(ctx, to, to.seq+1)
		switch {
		case failed != nil:
			return failed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		info := r.Info()
		if info.End != nil && to.seq >= info.Events {
			return nil
		}
		if err != nil {
			f.Rescue(ctx, id)
		}
		if !patience.Again(info, to.seq) {
			return app.Unended(r, err)
		}
	}
}
