// Package follow reads what becomes of a run that another process hosts, as it comes: its
// events, and what is on its terminal. A shim's doorbell says that something is about to
// come, the files say what.
package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// How often a follower looks at the file: soon after something was heard of the
// run, more and more seldom while nothing is.
const (
	followFirst = 2 * time.Millisecond
	followLast  = 250 * time.Millisecond
)

// Run is a run that is followed.
type Run struct {
	Dir      *store.Run
	Detached bool
	Dial     shim.Dialer
	// OnOrphan finds a host for a detached run that has none; nil: nobody can.
	OnOrphan func(ctx context.Context, id string) error
}

// follower reads the events of a run as they are written. It is for one goroutine, and
// holds nothing that outlives close.
type follower struct {
	Run
	file   *os.File
	offset int64 // of the first event that was not read
	skip   uint64
	buf    []byte
	ended  bool // the last event was read
	pause  time.Duration
	called time.Time  // OnOrphan
	last   time.Time  // when there was something to read, or a host was looked for
	conn   *shim.Conn // nil: only the clock tells
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
	}
	if f.conn != nil {
		f.conn.Close()
	}
}

// next waits for events and returns some, as whole lines that are valid until the
// next call. io.EOF says that the run has ended, HOST_GONE that nobody is left to
// end it.
func (f *follower) next(ctx context.Context) ([]byte, error) {
	for {
		data, err := f.read()
		if err != nil || len(data) > 0 {
			f.pause, f.last = followFirst, time.Now()
			return data, err
		}
		if f.ended {
			return nil, io.EOF
		}
		// Not only when all is silent: the agent may ring on while nobody tells what
		// it says.
		if time.Since(f.last) >= followLast {
			f.last = time.Now()
			if err := f.unhosted(ctx); err != nil {
				// What was written before the host left is there by now.
				if data, err := f.read(); err != nil || len(data) > 0 {
					return data, err
				}
				if f.ended {
					return nil, io.EOF
				}
				return nil, err
			}
		}
		if err := f.idle(ctx); err != nil {
			return nil, err
		}
	}
}

// unhosted is an error if nobody is left who would write events, and nobody can be
// found.
func (f *follower) unhosted(ctx context.Context) error {
	if record.Hosted(f.Dir) && (!f.Detached || !record.Orphaned(f.Dir)) {
		return nil
	}
	if !f.Detached || !record.Hosted(f.Dir) {
		return record.HostGone(f.Dir.ID)
	}
	if time.Since(f.called) < time.Second {
		return nil // it was called for
	}
	f.called = time.Now()
	e := record.HostGone(f.Dir.ID)
	if find := f.OnOrphan; find == nil {
		return e
	} else if err := find(ctx, f.Dir.ID); err != nil {
		e.Msg += ", and no other is available: " + err.Error()
		return e
	}
	return nil
}

// idle waits until it is worth to look again.
func (f *follower) idle(ctx context.Context) error {
	if f.conn == nil && f.pause < followLast {
		if shimInfo, lives := record.Shim(f.Dir); lives {
			f.conn, _ = f.Dial.Dial(ctx, shimInfo) // the clock alone will do
		}
	}
	var wake <-chan struct{}
	if f.conn != nil {
		wake = f.conn.Wake()
	}
	timer := time.NewTimer(f.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		f.pause = min(2*f.pause, followLast)
	case <-wake:
		// The host has to ask the adapter first, and a flood rings often.
		f.pause = followFirst
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followFirst):
		}
	}
	return nil
}

// read returns the whole lines that are there now, at most about a buffer of
// them. A line that is still being written is read again each time: until its end
// is there, its writer may take it back.
func (f *follower) read() ([]byte, error) {
	if f.file == nil {
		file, err := os.Open(f.Dir.Path("events.jsonl"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // the run is being started
		}
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeParse, "events of run %s: %w", f.Dir.ID, fault.Plain(err))
		}
		f.file = file
	}
	size := 64 << 10
	for {
		if cap(f.buf) < size {
			f.buf = make([]byte, size)
		}
		n, err := f.file.ReadAt(f.buf[:size], f.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, pluginapi.Errorf(pluginapi.CodeParse, "events of run %s: %w", f.Dir.ID, fault.Plain(err))
		}
		end := bytes.LastIndexByte(f.buf[:n], '\n') + 1
		if end == 0 && n == size {
			size *= 4 // a long line
			continue
		}
		if end == 0 {
			if cap(f.buf) > 1<<20 {
				f.buf = nil
			}
			return nil, nil
		}
		f.offset += int64(end)
		data := f.buf[:end]
		last := data[bytes.LastIndexByte(data[:end-1], '\n')+1:]
		f.ended = record.IsType(last, code.EventRunEnd)
		for f.skip > 0 && len(data) > 0 {
			data = data[bytes.IndexByte(data, '\n')+1:]
			f.skip--
		}
		if len(data) > 0 || f.ended {
			return data, nil
		}
	}
}

// Cursor reads the events of a run from number From on.
type Cursor struct {
	Run
	From uint64
}

// Copy writes events to w, as they come, until the run has ended. HOST_GONE says that
// nobody is left to end it.
func (c Cursor) Copy(ctx context.Context, w io.Writer) error {
	f := &follower{Run: c.Run, skip: max(c.From, 1) - 1, pause: followFirst, last: time.Now()}
	defer f.close()
	for {
		data, err := f.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return err
		}
	}
}

// Lines is Copy that calls yield for every event, without its ending, until that returns
// false.
func (c Cursor) Lines(ctx context.Context, yield func(line []byte) bool) error {
	err := c.Copy(ctx, lines(yield))
	if errors.Is(err, errConsumerGone) {
		return nil
	}
	return err
}

// lines takes whole lines at a time.
type lines func(line []byte) bool

func (l lines) Write(data []byte) (int, error) {
	for line := range bytes.Lines(data) {
		if !l(line[:len(line)-1]) {
			return 0, errConsumerGone
		}
	}
	return len(data), nil
}
