package record

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Live is the journal of a run that this process hosts: the shim writes
// it while it lives, this process after that.
type Live struct {
	File rawio.File
	Conn *shim.Conn
	// Write opens the journal to go on with it.
	Write func() (*journal.Writer, error)

	mu     sync.Mutex
	writer *journal.Writer
	taking chan struct{} // closed at the end of a TakeOver under way
}

func (s *Live) ReadAt(b []byte, offset int64) (int, error) {
	return s.File.ReadAt(b, offset)
}

func (s *Live) Committed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != nil {
		return s.writer.Size()
	}
	return s.Conn.Size()
}

func (s *Live) Wait(ctx context.Context) error {
	s.mu.Lock()
	conn, ours := s.Conn, s.writer != nil
	s.mu.Unlock()
	if ours {
		return io.EOF
	}
	select {
	case <-conn.Wake(): // also of a shim that has left since: what it has written comes first
		return nil
	default:
	}
	select {
	case <-conn.Wake():
		return nil
	case <-conn.Gone():
		if err := s.TakeOver(); err != nil {
			return err
		}
		return engine.ErrShimGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Alone reports that the shim has left.
func (s *Live) Alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writer != nil || s.Conn.Left()
}

// TakeOver makes this process the journal's writer, after the shim has gone. Of a run at
// another place that may take a minute, and readers do not wait for it.
func (s *Live) TakeOver() error {
	s.mu.Lock()
	for s.taking != nil {
		taking := s.taking
		s.mu.Unlock()
		<-taking
		s.mu.Lock()
	}
	if s.writer != nil {
		s.mu.Unlock()
		return nil
	}
	taking := make(chan struct{})
	s.taking = taking
	s.mu.Unlock()

	writer, err := s.Write()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking = nil
	close(taking)
	if err == nil {
		s.writer = writer
	}
	return err
}

// Sync brings the journal to the disk, whoever writes it.
func (s *Live) Sync() error { return s.File.Sync() }

// Append commits a record, by the shim or by this process, whoever writes.
func (s *Live) Append(kind journal.Kind, payload []byte) error {
	s.mu.Lock()
	writer, conn := s.writer, s.Conn
	s.mu.Unlock()
	if writer != nil {
		return writer.Append(kind, payload)
	}
	return conn.Append(kind, payload)
}

// AppendLate is Append also for a record that comes after the shim has left.
func (s *Live) AppendLate(kind journal.Kind, payload []byte) error {
	err := s.Append(kind, payload)
	if errors.Is(err, shim.ErrGone) {
		if err = s.TakeOver(); err == nil {
			err = s.Append(kind, payload)
		}
	}
	return err
}

// Close closes what is open here.
func (s *Live) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != nil {
		_ = s.writer.Close()
	}
	_ = s.File.Close()
}

// Own is the journal of a dead run, which this process has taken over.
type Own struct {
	rawio.File
	Writer *journal.Writer
}

func (s *Own) Alone() bool { return true }

func (s *Own) Committed() int64 { return s.Writer.Size() }

// Wait finds each time that no shim writes: of several readings each is told.
func (s *Own) Wait(context.Context) error { return engine.ErrShimGone }

var _, _, _ engine.Journal = (*Live)(nil), (*Own)(nil), (*File)(nil)
