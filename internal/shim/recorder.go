package shim

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/slowlock"
)

// recorder appends to the run's journal. The journal has a lock of its own, so that
// output does not wait for commands.
type recorder struct {
	journal *journal.Writer
	ring    func()        // called when the journal has grown
	full    func()        // called when the disk stayed full for all of wait
	wait    time.Duration // for room on a full disk

	mu     slowlock.Lock // held while somebody waits for room
	gaveUp atomic.Bool   // the disk stayed full: no output is recorded any more
	limit  atomic.Bool   // it was not the disk, but the limit of a file's size
}

// append commits a record and rings. On a full disk it waits, so that the agent
// blocks; when the wait is over the run is ended and the record is lost with it.
func (r *recorder) append(kind journal.Kind, payload []byte) bool {
	buf := make([]byte, journal.RecordHeader, journal.RecordHeader+len(payload))
	return r.appendFramed(kind, append(buf, payload...))
}

func (r *recorder) appendFramed(kind journal.Kind, buf []byte) bool {
	if r.gaveUp.Load() && (kind == journal.KindStdout || kind == journal.KindStderr) {
		return false // what is recorded of the output has an end, and no gaps
	}
	err := r.journal.AppendFramed(kind, buf)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		err = r.untilRoom(func() error { return r.journal.AppendFramed(kind, buf) })
	}
	if err != nil {
		return false
	}
	r.ring()
	return true
}

// untilRoom tries until it succeeds or the wait for the full disk is over. A limit of
// the file's size does not pass, so there is no wait for it.
func (r *recorder) untilRoom(try func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for since := time.Now(); !r.gaveUp.Load(); time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		limit := errors.Is(err, syscall.EFBIG)
		if limit || time.Since(since) > r.wait {
			r.limit.Store(limit)
			r.gaveUp.Store(true)
			r.full()
		}
	}
	return errDiskFull
}

// tryAppend commits a record if the disk takes it.
func (r *recorder) tryAppend(kind journal.Kind, payload []byte) {
	if r.journal.Append(kind, payload) == nil {
		r.ring()
	}
}

// copyOutput moves one stream of the agent into the journal until its end. active is
// called after each piece.
func (r *recorder) copyOutput(out Output, kind journal.Kind, size int, active func()) {
	buf := make([]byte, journal.RecordHeader+size)
	for {
		n, err := out.Read(buf[journal.RecordHeader:])
		if n > 0 {
			r.appendFramed(kind, buf[:journal.RecordHeader+n])
			active()
		}
		if pipe, ok := out.(pipeOutput); ok && errors.Is(err, os.ErrDeadlineExceeded) {
			r.copyRest(pipe.File, kind, buf)
		}
		if err != nil {
			return
		}
	}
}
