package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// waitingJournal is an empty journal; wait decides how waiting for more records ends.
type waitingJournal struct {
	*journal.Writer
	io.ReaderAt
	wait func(ctx context.Context) error
}

func (j *waitingJournal) Committed() int64               { return j.Size() }
func (j *waitingJournal) Wait(ctx context.Context) error { return j.wait(ctx) }
func (j *waitingJournal) Alone() bool                    { return true }

// A plugin is given up, and the same reading tells the end without it. Whoever wanted to
// end the first run of it and comes late must not end the second.
func TestFailureThatComesLate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	writer, err := journal.OpenWriter(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := eventlog.Open(filepath.Join(dir, "events.jsonl"), "01J", "fake", true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	src := &waitingJournal{Writer: writer, ReaderAt: file}
	e := New(Config{Journal: src, Log: log, Limits: Limits{Progress: time.Minute}, Start: &pb.Start{}})
	p, err := newPass(e, Reading{})
	if err != nil {
		t.Fatal(err)
	}
	e.best = p
	hung := errors.New("hung")
	var late func(error)
	src.wait = func(ctx context.Context) error {
		late = p.fail
		go late(hung)
		<-ctx.Done()
		return ctx.Err()
	}
	var broken *Broken
	if err := p.run(t.Context()); !errors.As(err, &broken) || !errors.Is(broken.Cause, hung) {
		t.Fatalf("the first run ended with %v", err)
	}
	src.wait = func(ctx context.Context) error {
		late(hung)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return io.EOF
	}
	if err := e.Finish(t.Context(), nil); err != nil {
		t.Errorf("the second run ended with %v", err)
	}
}
