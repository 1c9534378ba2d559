package host

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// liveSource is the journal of a run that this process hosts: the shim writes
// it while it lives, this process after that.
type liveSource struct {
	edges *edges
	file  rawio.File
	path  string

	mu     sync.Mutex
	conn   *shim.Conn
	writer *journal.Writer
}

func (s *liveSource) ReadAt(b []byte, offset int64) (int, error) {
	return s.file.ReadAt(b, offset)
}

func (s *liveSource) Committed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != nil {
		return s.writer.Size()
	}
	return s.conn.Size()
}

func (s *liveSource) Wait(ctx context.Context) error {
	s.mu.Lock()
	conn, ours := s.conn, s.writer != nil
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
		if err := s.takeOver(); err != nil {
			return err
		}
		return engine.ErrShimGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Alone reports that the shim has left.
func (s *liveSource) Alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writer != nil || isClosed(s.conn.Gone())
}

// takeOver makes this process the journal's writer, after the shim has gone.
func (s *liveSource) takeOver() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != nil {
		return nil
	}
	writer, err := s.edges.writer(s.path)
	if err != nil {
		return err
	}
	s.writer = writer
	return nil
}

// sync brings the journal to the disk, whoever writes it.
func (s *liveSource) sync() error { return s.file.Sync() }

// append commits a record, by the shim or by this process, whoever writes.
func (s *liveSource) append(kind journal.Kind, payload []byte) error {
	s.mu.Lock()
	writer, conn := s.writer, s.conn
	s.mu.Unlock()
	if writer != nil {
		return writer.Append(kind, payload)
	}
	return conn.Append(kind, payload)
}

// appendLate is append also for a record that comes after the shim has left.
func (s *liveSource) appendLate(kind journal.Kind, payload []byte) error {
	err := s.append(kind, payload)
	if errors.Is(err, shim.ErrGone) {
		if err = s.takeOver(); err == nil {
			err = s.append(kind, payload)
		}
	}
	return err
}

func (s *liveSource) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != nil {
		_ = s.writer.Close()
	}
	_ = s.file.Close()
}

// fileSource is a journal that nobody writes any more.
type fileSource struct {
	*os.File
	size int64
}

func openFileSource(path string) (*fileSource, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &fileSource{f, info.Size()}, nil
}

func (s *fileSource) Committed() int64           { return s.size }
func (s *fileSource) Wait(context.Context) error { return io.EOF }
func (s *fileSource) Alone() bool                { return true }

var _, _ engine.Journal = (*liveSource)(nil), (*fileSource)(nil)
