package shim

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Far is the end of a link where the shim is. It keeps no state: a new
// connection needs nothing of the one before.
type Far struct {
	Dir   func(runID string) (string, error) // the run's directory
	Start func(dir string, hello Hello) (io.ReadWriteCloser, error)
	Dial  Dialer
	Lives func(Info) bool
	Sweep func(runID string) // kills what a shim that was killed has left
	Open  rawio.Opener       // nil: the system's
	// Left, if not nil, makes the file LeftName in the directory of a run that is over: what else
	// is fetched of it. It may be called twice at a time, by two connections of a link.
	Left func(runID, dir string)
}

// Attach carries frames between the stream of in and out and the shim of one run, until
// either ends.
func (f Far) Attach(in io.Reader, out io.WriteCloser) error {
	done := make(chan error, 2)
	w := newWire(stream{in, out}, func() { done <- errors.New("nothing was heard from the other end") })
	defer w.stale.Stop()
	go func() { done <- f.attach(w) }()
	return <-done
}

// stream is a pair of files as one.
type stream struct {
	io.Reader
	io.WriteCloser
}

func (f Far) attach(w *wire) error {
	t, _, body, err := w.read()
	if err != nil {
		return err
	}
	var o Opening
	if t != frameOpen || json.Unmarshal(body, &o) != nil {
		return errFrame
	}
	dir, err := f.Dir(o.RunID)
	if err != nil {
		return w.send(frameOver, 0, encode(over{Code: code.RunNotActive, Error: err.Error()}))
	}
	run := &farRun{Far: f, opening: o, dir: dir, wire: w, sent: o.Offset, over: make(chan struct{})}
	return run.serve()
}

// farRun is a run and one connection of its link.
type farRun struct {
	Far
	opening Opening
	dir     string
	wire    *wire
	sent    int64 // of the journal
	journal rawio.File
	conn    io.ReadWriteCloser // to the shim; nil if it was gone before
	over    chan struct{}      // closed when this connection of the link is
}

func (r *farRun) serve() (err error) {
	if r.Open == nil {
		r.Open = rawio.OpenFile
	}
	if r.journal, err = r.Open(filepath.Join(r.dir, "journal"), os.O_RDONLY, 0); err != nil {
		return r.wire.send(frameOver, 0, encode(over{Code: code.RunNotActive, Error: "there is nothing of the run"}))
	}
	defer r.journal.Close()
	if err := r.connect(); err != nil {
		refused, ok := errors.AsType[*RemoteError](err)
		if !ok {
			refused = &RemoteError{Code: code.Spawn, Msg: err.Error()}
		}
		return r.wire.send(frameOver, 0, encode(over{Code: refused.Code, Error: refused.Msg, Hint: refused.Hint}))
	}
	back := make(chan error, 1)
	go func() { back <- r.tell() }()
	for {
		t, id, body, err := r.wire.read()
		if err == nil {
			switch t {
			case framePing:
				err = r.wire.send(framePing, 0)
			case frameDestroy:
				r.destroy()
				err = r.wire.send(frameDestroy, 0)
			default:
				r.pass(t, id, body)
			}
		}
		if err != nil {
			close(r.over)
			if r.conn != nil {
				_ = r.conn.Close()
			}
			<-back
			return err
		}
	}
}

// connect finds the shim, or starts it.
func (r *farRun) connect() (err error) {
	hello := r.opening.Hello
	hello.Version, hello.Host = Version, true
	if r.opening.Launch {
		if r.conn, err = r.Start(r.dir, hello); err != nil {
			return err
		}
	} else {
		info, err := ReadInfo(r.dir)
		if err != nil || !r.Lives(info) {
			return nil
		}
		if r.conn, err = r.Dial(context.Background(), info.Socket); err != nil {
			r.conn = nil // not the interface of a nil connection
			return r.waitGone(info)
		}
	}
	_, err = r.conn.Write(frame(frameHello, 0, encode(hello)))
	return err
}

// waitGone waits for the end of a shim that answers no more.
func (r *farRun) waitGone(info Info) error {
	for end := time.Now().Add(silence / 2); r.Lives(info); {
		if time.Now().After(end) {
			return errors.New("the run's shim does not answer")
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.over:
			return io.ErrClosedPipe
		}
	}
	return nil
}

// tell sends what the shim says, and the journal, until the shim is gone and all was sent.
func (r *farRun) tell() error {
	if r.conn != nil {
		if err := r.forward(); err != nil {
			return err
		}
	}
	if isClosed(r.over) {
		return io.ErrClosedPipe // the next connection tells it
	}
	if info, err := ReadInfo(r.dir); err == nil {
		if err := r.waitGone(info); err != nil {
			return err
		}
	}
	exit, _ := os.ReadFile(filepath.Join(r.dir, "exit"))
	exit = []byte(strings.TrimRight(string(exit), "\x00"))
	r.Sweep(r.opening.RunID) // an exit may be that of the attempt before
	info, err := r.journal.Stat()
	if err == nil {
		err = r.sendJournal(info.Size(), false)
	}
	if err == nil {
		err = r.sendLeft()
	}
	if err != nil {
		return err
	}
	return r.wire.send(frameOver, 0, encode(over{Exit: exit}))
}

// sendLeft sends what else the run has left, from where the other end has it. What cannot be read
// is missing.
func (r *farRun) sendLeft() error {
	if r.Left == nil {
		return nil
	}
	r.Left(r.opening.RunID, r.dir)
	left, err := r.Open(filepath.Join(r.dir, LeftName), os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer left.Close()
	buf := make([]byte, piece)
	for offset := r.opening.Left; ; {
		n, _ := left.ReadAt(buf, offset)
		if n == 0 {
			return nil
		}
		if err := r.wire.send(frameLeft, 0, journalPiece(false, offset, buf[:n])...); err != nil {
			return err
		}
		offset += int64(n)
	}
}

// forward sends on what comes from the shim.
func (r *farRun) forward() error {
	for {
		t, id, body, err := readFrame(r.conn)
		if err != nil {
			return nil // the shim is gone
		}
		switch t {
		case frameWake:
			if len(body) == 8 {
				err = r.sendJournal(int64(binary.LittleEndian.Uint64(body)), true)
			}
		case frameWelcome:
			var welcome Welcome
			if json.Unmarshal(body, &welcome) != nil {
				return errFrame
			}
			if err = r.wire.send(t, id, body); err == nil && welcome.Code == "" {
				err = r.sendJournal(welcome.Size, true)
			}
		default:
			err = r.wire.send(t, id, body)
		}
		if err != nil {
			return err
		}
	}
}

// sendJournal sends the journal as far as size.
func (r *farRun) sendJournal(size int64, whole bool) error {
	buf := make([]byte, min(piece, max(size-r.sent, 0)))
	for r.sent < size {
		n, err := r.journal.ReadAt(buf[:min(int64(len(buf)), size-r.sent)], r.sent)
		if n == 0 {
			return err
		}
		if err := r.wire.send(frameJournal, 0, journalPiece(whole && r.sent+int64(n) == size, r.sent, buf[:n])...); err != nil {
			return err
		}
		r.sent += int64(n)
	}
	return nil
}

// pass gives a command to the shim. One that has gone needs none: that it has gone is the
// reply.
func (r *farRun) pass(t frameType, id uint32, body []byte) {
	if r.conn != nil {
		_, _ = r.conn.Write(frame(t, id, body))
	}
}

// destroy removes what a run that is over has left.
func (r *farRun) destroy() {
	if info, err := ReadInfo(r.dir); err == nil && r.Lives(info) {
		return
	}
	if temp := r.opening.Hello.TempDir; temp != "" {
		_ = os.RemoveAll(temp)
	}
	_ = os.RemoveAll(r.dir)
}
