package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/journal"
)

// waitingSource is an empty journal; wait is what becomes of those who wait for more.
type waitingSource struct {
	*journal.Writer
	io.ReaderAt
	wait func(ctx context.Context) error
}

func (s *waitingSource) Committed() int64               { return s.Size() }
func (s *waitingSource) Wait(ctx context.Context) error { return s.wait(ctx) }

// A plugin is given up, and the same pump tells the end without it. Whoever wanted to
// end the first run and comes late must not end the second.
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
	src := &waitingSource{Writer: writer, ReaderAt: file}
	p, err := (&Host{limits: limits{progress: time.Minute}}).newPump(src, log, 0)
	if err != nil {
		t.Fatal(err)
	}
	hung := errors.New("hung")
	var late func(error)
	src.wait = func(ctx context.Context) error {
		late = p.fail
		go late(hung)
		<-ctx.Done()
		return ctx.Err()
	}
	var broken *errConversation
	if err := p.run(t.Context()); !errors.As(err, &broken) || !errors.Is(broken.cause, hung) {
		t.Fatalf("the first run ended with %v", err)
	}
	p.deafen()
	src.wait = func(ctx context.Context) error {
		late(hung)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return io.EOF
	}
	if err := p.run(t.Context()); err != nil {
		t.Errorf("the second run ended with %v", err)
	}
}
