// Package eventlog is the numbered list of a run's events, one JSON object a
// line in events.jsonl. Events are in the file before any consumer sees them;
// every consumer has a cursor of its own and reads the file, which for a live
// one is the page cache. So a consumer that stalls, or comes late, loses nothing
// and costs the others nothing, and the log holds no event in memory.
//
// Checksums stand in a file of their own beside it, see SumsPath, so that the lines
// are no one's but the events'.
//
// A Log is written by one goroutine; cursors are for one goroutine each.
package eventlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/sys/checksum"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/readbuf"
	"github.com/amux-dev/amux/pluginapi"
)

// indexEvery is how many events lie between two entries of the seq → offset
// index, which lets a cursor start anywhere without reading from the start.
const indexEvery = 1024

// Log is the event log of one run.
type Log struct {
	// Durable is called after a Commit with an event at which the log is to be on the
	// disk: Sync brings it there. Nil does nothing.
	Durable func()
	// Before is called by Commit before each batch is shown, once it is in the file.
	// Its error is Commit's. Nil does nothing.
	Before func() error

	open   rawio.Opener
	file   rawio.File
	prefix [2][]byte // what stands between type and seq, and between time and the adapter's fields

	mu      sync.Mutex
	size    int64
	count   uint64
	closed  bool
	waiting []*Cursor // for the next change
	index   []mark    // places from which events can be read

	// The writer's own.
	buf     []byte
	base    int64   // file offset of buf[0]
	begun   int64   // file offset where the last event starts
	opened  bool    // its { was seen, but nothing behind it
	starts  []int64 // index entries of the batch
	pending uint64  // whole events in the batch
	sums    sums
	cut     *Damage
	check   object
	stamp   time.Time
	stamped []byte
}

// mark is a place between two events.
type mark struct {
	before uint64 // how many events stand before it
	offset int64
}

// Open opens or creates the log at path for the run and agent of those names. Who
// may write checks what is there: a torn last line is cut off, and so is everything
// from the first block that is not as it was written, which is kept in a file
// beside it, path without .jsonl and with .bad-OFFSET; see Cut. Count whole events
// are left.
func Open(path, runID, agent string, writable bool) (*Log, error) {
	return OpenOn(rawio.OpenFile, path, runID, agent, writable)
}

// OpenOn is Open for a disk whose files open opens.
func OpenOn(open rawio.Opener, path, runID, agent string, writable bool) (*Log, error) {
	flags := os.O_RDONLY
	if writable {
		flags = os.O_RDWR | os.O_CREATE
	}
	f, err := open(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{open: open, file: f}
	l.prefix[0] = strconv.AppendQuote([]byte(`,"run_id":`), runID)
	l.prefix[0] = append(l.prefix[0], `,"seq":`...)
	l.prefix[1] = strconv.AppendQuote([]byte(`,"agent":`), agent)
	l.sums.path = SumsPath(path)
	if writable {
		err = l.recover(path, runID)
	}
	if err == nil {
		err = l.scan(writable)
	}
	if err == nil && writable {
		l.sums.flushed, err = sumOf(f, l.sums.from, l.size)
		l.sums.sum = l.sums.flushed
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("event log %s: %w", path, err)
	}
	l.closed = !writable
	return l, nil
}

// scan counts what is there.
func (l *Log) scan(cut bool) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	var whole int64
	if !cut {
		whole = l.skim(info.Size())
	}
	offset := whole
	buf := make([]byte, min(256<<10, info.Size()-whole+1)) // a new log has nothing
	for {
		n, err := l.file.ReadAt(buf, offset)
		for at := 0; at < n; {
			i := bytes.IndexByte(buf[at:n], '\n')
			if i < 0 {
				break
			}
			if l.count%indexEvery == 0 {
				l.index = append(l.index, mark{l.count, whole})
			}
			l.count++
			at += i + 1
			whole = offset + int64(at)
		}
		offset += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	l.size, l.base = whole, whole
	if cut && offset > whole {
		return l.file.Truncate(whole)
	}
	return nil
}

// Count is the number of events that are committed.
func (l *Log) Count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Add puts an event into the batch that Commit writes: object is the adapter's
// JSON object. An object that is not valid, or names a key of the host's, is
// refused and leaves the batch as it was.
func (l *Log) Add(t string, at time.Time, object []byte) error {
	if err := l.Begin(t, at); err != nil {
		return err
	}
	if err := l.Piece(object); err != nil {
		return err
	}
	return l.End()
}

// Begin starts an event whose object comes in pieces. Piece and End follow; the
// first error of the three undoes the event.
func (l *Log) Begin(t string, at time.Time) error {
	for _, c := range []byte(t) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return fmt.Errorf("event type %q is not snake_case", t)
		}
	}
	if t == "" || len(t) > 64 {
		return fmt.Errorf("event type %q is empty or longer than 64", t)
	}
	l.begun = l.base + int64(len(l.buf))
	l.opened = false
	l.sums.ends = l.sums.ends || endsBlock[t]
	seq := l.count + l.pending + 1 // count is changed by this goroutine alone
	if (seq-1)%indexEvery == 0 {
		l.starts = append(l.starts, l.begun)
	}
	if !at.Equal(l.stamp) || l.stamped == nil {
		l.stamp = at
		l.stamped = append(l.stamped[:0], `,"time":"`...)
		l.stamped = at.UTC().AppendFormat(l.stamped, "2006-01-02T15:04:05.000000Z")
		l.stamped = append(l.stamped, '"')
	}
	l.buf = append(l.buf, `{"type":"`...)
	l.buf = append(l.buf, t...)
	l.buf = append(l.buf, '"')
	l.buf = append(l.buf, l.prefix[0]...)
	l.buf = strconv.AppendUint(l.buf, seq, 10)
	l.buf = append(l.buf, l.stamped...)
	l.buf = append(l.buf, l.prefix[1]...)
	l.check = object{stack: l.check.stack[:0], key: l.check.key[:0]}
	return nil
}

// Piece adds the next bytes of the object.
func (l *Log) Piece(data []byte) error {
	fresh := l.check.state == wantObject
	if err := l.check.write(data); err != nil {
		l.undo()
		return err
	}
	if fresh || l.opened {
		data = bytes.TrimLeft(data, " ")
		if fresh && len(data) > 0 {
			l.opened = true
			data = bytes.TrimLeft(data[1:], " ")
		}
		if len(data) == 0 {
			return nil
		}
		l.opened = false
		if data[0] != '}' {
			l.buf = append(l.buf, ',')
		}
	}
	l.buf = append(l.buf, data...)
	if len(l.buf) > 4*pluginapi.PieceSize {
		// A long event goes to the file as it comes and is seen at Commit,
		// which also tells if this write failed.
		_ = l.flush()
	}
	return nil
}

// End ends the event.
func (l *Log) End() error {
	if err := l.check.end(); err != nil {
		l.undo()
		return err
	}
	l.buf = append(l.buf, '\n')
	l.pending++
	return nil
}

// undo forgets the event that was begun.
func (l *Log) undo() {
	if n := len(l.starts); n > 0 && l.starts[n-1] == l.begun {
		l.starts = l.starts[:n-1]
	}
	if l.begun >= l.base {
		l.buf = l.buf[:l.begun-l.base]
		return
	}
	l.base, l.buf, l.sums.stale = l.begun, l.buf[:0], true
}

// flush writes buf at the end of the file. After an error buf is whole and the
// same flush can be tried again.
func (l *Log) flush() error {
	sum, err := l.sumWithBuf()
	if err != nil {
		return err
	}
	return l.write(sum)
}

// sumWithBuf is the sum of the open block, with what is in buf.
func (l *Log) sumWithBuf() (uint32, error) {
	if err := l.rehash(); err != nil {
		return 0, err
	}
	return checksum.Update(l.sums.flushed, l.buf), nil
}

// write is flush with a sum that the caller has computed.
func (l *Log) write(sum uint32) error {
	if _, err := l.file.WriteAt(l.buf, l.base); err != nil {
		return err
	}
	l.sums.flushed = sum
	l.base += int64(len(l.buf))
	if cap(l.buf) > 8*pluginapi.PieceSize {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	return nil
}

// Commit writes the batch, calls before for each of its lines if before is not
// nil, and then shows it to the cursors. After an error nothing is shown, the
// batch is kept, and Commit can be tried again.
func (l *Log) Commit(before func(line []byte)) error {
	if l.pending == 0 {
		return nil
	}
	end := l.base + int64(len(l.buf))
	seal, durable := l.sums.ends || end-l.sums.from >= blockSize, l.sums.ends
	sum, err := l.sumWithBuf()
	if err != nil {
		return err
	}
	if seal {
		if err := l.seal(block{end, l.count + l.pending, sum}); err != nil {
			return err
		}
	}
	if err := l.write(sum); err != nil {
		return err
	}
	if l.Before != nil {
		if err := l.Before(); err != nil {
			return err
		}
	}
	if before != nil {
		// Read back rather than kept: a batch may hold an event that is larger
		// than what is worth holding.
		batch := &Log{file: l.file, size: l.base, closed: true}
		c := &Cursor{log: batch, offset: l.size}
		if err := c.Lines(context.Background(), func(line []byte) bool { before(line); return true }); err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.size = l.base
	l.count += l.pending
	for _, offset := range l.starts {
		l.index = append(l.index, mark{uint64(len(l.index)) * indexEvery, offset})
	}
	l.changed()
	l.mu.Unlock()
	l.pending, l.starts = 0, l.starts[:0]
	if l.sums.sum = l.sums.flushed; seal {
		l.sealed()
	}
	if durable && l.Durable != nil {
		l.Durable()
	}
	return nil
}

// Sync brings what is committed to the disk, and waits for that. It may be called
// while others use the log.
func (l *Log) Sync() error {
	l.mu.Lock()
	sums := l.sums.file
	l.mu.Unlock()
	err := l.file.Sync()
	if sums != nil && err == nil {
		err = sums.Sync()
	}
	return err
}

// Rollback forgets the events that were added and not committed.
func (l *Log) Rollback() {
	l.base, l.buf = l.size, l.buf[:0]
	l.pending, l.starts = 0, l.starts[:0]
	_ = l.file.Truncate(l.size) // what stays behind is overwritten
	l.unseal()
}

// Idle gives back the buffer of a flood: an idle run holds none.
func (l *Log) Idle() {
	const keep = 4 << 10
	if len(l.buf) == 0 && cap(l.buf) > keep {
		l.buf = nil
	}
}

// Finish says that no event will follow: cursors end when they have read all.
func (l *Log) Finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		l.changed()
	}
}

// changed wakes the cursors that wait. It is called with mu held.
func (l *Log) changed() {
	for i, c := range l.waiting {
		l.waiting[i], c.waits = nil, false
		select {
		case c.wake <- struct{}{}:
		default: // it was woken before and has not looked yet
		}
	}
	l.waiting = l.waiting[:0]
}

// Close closes the file. Cursors that are still open read on from the file as it
// is, so Close comes after their end.
func (l *Log) Close() error {
	l.Finish()
	if l.sums.file != nil {
		_ = l.sums.file.Close()
	}
	return l.file.Close()
}

// Cursor reads events from one place on.
type Cursor struct {
	log    *Log
	offset int64
	skip   uint64
	buf    []byte
	wake   chan struct{} // gets one when the log has changed
	waits  bool          // with log.mu: for that
}

// readSize is what a cursor reads at once.
const readSize = 64 << 10

// release gives back the buffer of a cursor that waits.
func (c *Cursor) release() {
	readbuf.Put(c.buf)
	c.buf = nil
}

// From returns a cursor at the event of number seq (1 is the first).
func (l *Log) From(seq uint64) *Cursor {
	seq = max(seq, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Cursor{log: l, skip: seq - 1}
	at, found := slices.BinarySearchFunc(l.index, c.skip, func(m mark, before uint64) int { return cmp.Compare(m.before, before) })
	if found {
		at++
	}
	for _, m := range slices.Backward(l.index[:at]) {
		if l.endsEvent(m.offset) {
			c.offset, c.skip = m.offset, c.skip-m.before
			break
		}
	}
	return c
}

// endsEvent reports whether an event ends at an offset, or the log begins there.
func (l *Log) endsEvent(offset int64) bool {
	if offset == 0 {
		return true
	}
	var last [1]byte
	_, err := l.file.ReadAt(last[:], offset-1)
	return err == nil && last[0] == '\n'
}

// skim takes the index of a log of that size from its sums, as far as they go, so that a long log
// can be opened without reading it: Check is what compares the two. It returns how far that is.
func (l *Log) skim(size int64) int64 {
	blocks, damage, err := readSums(l.sums.path)
	if err != nil || damage != nil || len(blocks) == 0 {
		return 0
	}
	last := blocks[len(blocks)-1]
	if last.end > size || !l.endsEvent(last.end) {
		return 0
	}
	l.index = append(l.index, mark{})
	for _, b := range blocks {
		l.index = append(l.index, mark{b.count, b.end})
	}
	l.count = last.count
	return last.end
}

// Next waits for events and returns some bytes of them, not always whole lines.
// The bytes are valid until the next call. io.EOF says that the log has finished.
func (c *Cursor) Next(ctx context.Context) ([]byte, error) {
	for {
		c.log.mu.Lock()
		size, closed := c.log.size, c.log.closed
		if c.offset >= size && !closed {
			c.wait()
		}
		c.log.mu.Unlock()
		if c.offset >= size {
			c.release()
			if closed {
				return nil, io.EOF
			}
			select {
			case <-c.wake:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		want := int(min(readSize, size-c.offset))
		if cap(c.buf) < want {
			c.release()
			c.buf = readbuf.Get(want)
		}
		n, err := c.log.file.ReadAt(c.buf[:want], c.offset)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		data := c.buf[:n]
		c.offset += int64(n)
		for c.skip > 0 && len(data) > 0 {
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				data = nil
				break
			}
			data = data[i+1:]
			c.skip--
		}
		if len(data) > 0 {
			return data, nil
		}
	}
}

// wait asks to be woken by the next change. It is called with log.mu held.
func (c *Cursor) wait() {
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	if !c.waits {
		c.waits = true
		c.log.waiting = append(c.log.waiting, c)
	}
}

// Copy writes the events to w until the log has finished or ctx ends.
func (c *Cursor) Copy(ctx context.Context, w io.Writer) error {
	for {
		data, err := c.Next(ctx)
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

// Lines calls f for every whole line, without its ending, until the log has
// finished, ctx ends or f returns false. The line is valid until f returns.
func (c *Cursor) Lines(ctx context.Context, f func(line []byte) bool) error {
	var carry []byte
	for {
		data, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for len(data) > 0 {
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				carry = append(carry, data...)
				break
			}
			line := data[:i]
			if len(carry) > 0 {
				line = append(carry, line...)
				carry = nil
			}
			if !f(line) {
				return nil
			}
			data = data[i+1:]
		}
	}
}
