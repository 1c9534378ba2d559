// Package journal is the append-only log of one run: everything the agent wrote,
// everything that was asked of it, every clock that fired, in one order. It is
// the only input of state machine and adapter (keystone rule K1).
//
// The file is a header and records. A record has a length, a CRC-32C and the
// time it was written. The next writer cuts off a torn tail, left by a process
// that was killed while it wrote, and whatever follows a record that is not as it
// was written; it destroys neither, see Damage. One process writes at a time; any
// number may read what is committed. The package does not interpret payloads.
// Append does not wait for the disk: Sync does.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amux-dev/amux/internal/sys/aside"
	"github.com/amux-dev/amux/internal/sys/checksum"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/readbuf"
)

// Kind says what a record is. Numbers are written to disk and never reused.
type Kind uint8

// The kinds. Payloads are JSON (see record.go), or the bytes themselves for
// Stdout and Stderr.
const (
	KindState       Kind = 1  // State
	KindPlan        Kind = 2  // Plan: what will be spawned, without values of variables
	KindSpawned     Kind = 3  // Spawned
	KindSpawnFailed Kind = 4  // SpawnFailed
	KindStdout      Kind = 5  // bytes
	KindStderr      Kind = 6  // bytes
	KindTerminal    Kind = 7  // Terminal: what concerns the agent's terminal beside its output
	KindInput       Kind = 8  // Input
	KindEffect      Kind = 9  // Effect: bytes of the adapter went to stdin, or stdin was closed
	KindTimer       Kind = 10 // Timer: one that the adapter set has fired
	KindTimeout     Kind = 11 // Timeout: a deadline of the run has passed
	KindSignal      Kind = 12 // Signal: sent to the tree or the leader
	KindCollected   Kind = 13 // Collected
	KindExit        Kind = 14 // Exit: the leader and all its descendants are gone
	KindFault       Kind = 15 // Fault: the adapter is not heard from here on
	KindNote        Kind = 16 // Note: for people
	KindRetry       Kind = 17 // Retry: the run will spawn once more
	KindDamage      Kind = 18 // Damage: records were lost here, and what is left of them is kept
	KindBudget      Kind = 19 // Budget: one is spent, and the run is to end
	KindPreview     Kind = 20 // Preview: what a request would change, as it waits for people
)

const (
	// Version is written into the header; a higher one is refused.
	Version = 1
	// maxVersion is more than there will be: a higher one is a damaged header.
	maxVersion = 1 << 16
	headerSize = 16
	// RecordHeader is the size of what precedes a payload: length and CRC
	// (4 bytes each), time in nanoseconds since 1970 (8), kind (1), 3 of zero.
	RecordHeader = 20
	// MaxPayload bounds one record.
	MaxPayload = 64 << 20
)

var magic = [8]byte{'A', 'M', 'U', 'X', 'J', 'R', 'N', 'L'}

// Errors of reading.
var (
	ErrFormat = errors.New("not a journal, or of a newer version")
	ErrTorn   = errors.New("torn record")
	errHeader = fmt.Errorf("%w: its header is damaged", ErrFormat)
)

// Record is one entry. Payload is valid until the next call of the reader.
type Record struct {
	Kind    Kind
	Time    time.Time
	Offset  int64 // of the record in the file
	Payload []byte
}

// Writer appends records. It is safe for concurrent use; a record is committed
// when Append returns.
type Writer struct {
	mu   sync.Mutex
	file rawio.File
	size atomic.Int64
	last int64 // time of the last record, which never goes back
	now  func() time.Time
}

// OpenWriter opens or creates the journal at path for appending, behind its last
// good record. What follows that one is moved to a file beside it, path.bad-OFFSET:
// a torn tail with a Note, anything else with a Damage in its place.
func OpenWriter(path string, now func() time.Time) (*Writer, error) {
	f, err := rawio.OpenFile(path, OpenFlags, 0o600)
	if err != nil {
		return nil, err
	}
	return NewWriter(f, now)
}

// OpenFlags are those with which the file of NewWriter is opened.
const OpenFlags = os.O_RDWR | os.O_CREATE

// NewWriter is OpenWriter for an open file, which it closes after an error.
func NewWriter(f rawio.File, now func() time.Time) (*Writer, error) {
	w := &Writer{file: f, now: now}
	if err := w.recover(); err != nil {
		f.Close()
		return nil, fmt.Errorf("journal %s: %w", f.Name(), err)
	}
	return w, nil
}

func (w *Writer) recover() error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	switch {
	case size == 0:
		return w.begin()
	case size < headerSize:
		return w.cut(0, size, nil)
	}
	r, err := NewReader(w.file)
	if errors.Is(err, errHeader) {
		return w.cut(0, size, &Damage{What: "the header is not that of a journal"})
	}
	if err != nil {
		return err
	}
	for {
		rec, err := r.Next(size)
		if err == nil {
			w.last = rec.Time.UnixNano()
			continue
		}
		damage, bad := errors.AsType[*Damage](err)
		switch {
		case err == io.EOF:
			w.size.Store(size)
			return nil
		case err == ErrTorn && followed(w.file, r.Offset(), size):
			damage = &Damage{What: "a record is longer than what is left, and others follow it"}
		case err != ErrTorn && !bad:
			return err
		}
		return w.cut(r.Offset(), size, damage)
	}
}

// begin writes the header.
func (w *Writer) begin() error {
	var header [headerSize]byte
	copy(header[:], magic[:])
	binary.LittleEndian.PutUint32(header[8:], Version)
	if _, err := w.file.WriteAt(header[:], 0); err != nil {
		return err
	}
	w.size.Store(headerSize)
	return nil
}

// cut moves what is behind offset to another file and says so in its place.
func (w *Writer) cut(offset, size int64, damage *Damage) error {
	kept, err := aside.Keep(w.file, offset, fmt.Sprintf("%s.bad-%d", w.file.Name(), offset))
	if err != nil {
		return fmt.Errorf("keep what is behind offset %d: %w", offset, err)
	}
	if offset == 0 {
		if err := w.begin(); err != nil {
			return err
		}
	} else {
		w.size.Store(offset)
	}
	// The record overwrites what it speaks of, so that no crash leaves a cut without
	// it, and a full disk has room for it.
	if damage != nil {
		damage.File, damage.Offset, damage.Size, damage.Kept = "journal", offset, size-offset, filepath.Base(kept)
		err = w.Append(KindDamage, Encode(damage))
	} else {
		err = w.Append(KindNote, Encode(Note{fmt.Sprintf(
			"%d bytes at offset %d were no whole record and are kept in %s", size-offset, offset, filepath.Base(kept))}))
	}
	if err != nil {
		return err
	}
	return w.file.Truncate(w.size.Load())
}

// Size is the committed length: a reader that stays below it sees whole records.
func (w *Writer) Size() int64 { return w.size.Load() }

// Append commits one record. After an error nothing of the record is left.
func (w *Writer) Append(kind Kind, payload []byte) error {
	buf := make([]byte, RecordHeader, RecordHeader+len(payload))
	return w.AppendFramed(kind, append(buf, payload...))
}

// AppendFramed is Append for a caller that has left RecordHeader bytes free in
// front of the payload, so that nothing is copied.
func (w *Writer) AppendFramed(kind Kind, buf []byte) error {
	payload := len(buf) - RecordHeader
	if payload > MaxPayload {
		return fmt.Errorf("journal record of %d bytes is over the limit of %d", payload, MaxPayload)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return os.ErrClosed
	}
	now := max(w.now().UnixNano(), w.last)
	binary.LittleEndian.PutUint32(buf[0:], uint32(payload))
	binary.LittleEndian.PutUint64(buf[8:], uint64(now))
	buf[16], buf[17], buf[18], buf[19] = byte(kind), 0, 0, 0
	binary.LittleEndian.PutUint32(buf[4:], checksum.Of(buf[8:]))
	offset := w.size.Load()
	if _, err := w.file.WriteAt(buf, offset); err != nil {
		// On a full disk a part may have been written; without it the file is
		// as before, and the same append can be tried again.
		_ = w.file.Truncate(offset)
		return err
	}
	w.last = now
	w.size.Store(offset + int64(len(buf)))
	return nil
}

// Close ends the writer. It is safe to call twice.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// Reader reads records in order. It is for one goroutine.
type Reader struct {
	src    io.ReaderAt
	offset int64 // of the next record
	buf    []byte
	start  int64 // file offset of buf[0]
}

// readAhead is what one read takes if so much is there: large enough that a flood
// goes through the plugin in few, large batches. It is given back by Release.
const readAhead = 256 << 10

// NewReader checks the header and starts at the first record.
func NewReader(src io.ReaderAt) (*Reader, error) {
	var header [headerSize]byte
	n, err := src.ReadAt(header[:], 0)
	if damage, ok := errors.AsType[*Damage](err); ok { // of a packed one
		return nil, fmt.Errorf("%w: %w", errHeader, damage)
	}
	if err != nil && err != io.EOF {
		return nil, err
	} else if n < headerSize {
		return nil, errHeader
	}
	version := binary.LittleEndian.Uint32(header[8:])
	switch {
	case [8]byte(header[:8]) != magic || version == 0 || version > maxVersion:
		return nil, errHeader
	case version > Version:
		return nil, ErrFormat
	case [4]byte(header[12:]) != [4]byte{}:
		return nil, errHeader
	}
	return &Reader{src: src, offset: headerSize}, nil
}

// Whole is the size of the records of a journal of that size up to the first that is not as it
// was written. The error says that not even its header is, or that it cannot be read.
func Whole(src io.ReaderAt, size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	r, err := NewReader(src)
	if err != nil {
		return 0, err
	}
	for {
		_, err := r.Next(size)
		if _, damaged := errors.AsType[*Damage](err); err == io.EOF || err == ErrTorn || damaged {
			return r.Offset(), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// Offset is where the next record starts.
func (r *Reader) Offset() int64 { return r.offset }

// Goto goes to a place where a record starts, as Offset has said.
func (r *Reader) Goto(offset int64) { r.offset = offset }

// Next returns the record at the reader's position. limit is the committed size
// of the file: io.EOF says that the position has reached it. ErrTorn says that
// the file ends within the record, a *Damage that the record is not as it was
// written; the reader moves past neither.
func (r *Reader) Next(limit int64) (Record, error) {
	if r.offset >= limit {
		return Record{}, io.EOF
	}
	head, err := r.bytes(r.offset, RecordHeader, limit)
	if err != nil {
		return Record{}, err
	}
	length := int64(binary.LittleEndian.Uint32(head))
	if length > MaxPayload {
		return Record{}, &Damage{File: "journal", Offset: r.offset, What: fmt.Sprintf("a record claims %d bytes", length)}
	}
	data, err := r.bytes(r.offset, RecordHeader+int(length), limit)
	if err != nil {
		return Record{}, err
	}
	if binary.LittleEndian.Uint32(data[4:]) != checksum.Of(data[8:]) {
		return Record{}, &Damage{File: "journal", Offset: r.offset, What: "a record does not match its checksum"}
	}
	rec := Record{
		Kind:    Kind(data[16]),
		Time:    time.Unix(0, int64(binary.LittleEndian.Uint64(data[8:]))),
		Offset:  r.offset,
		Payload: data[RecordHeader:],
	}
	r.offset += int64(len(data))
	return rec, nil
}

// Span is where a record stands.
type Span struct {
	Kind   Kind
	Offset int64
	Size   int64 // of its payload
}

// Payload is where the payload begins.
func (s Span) Payload() int64 { return s.Offset + RecordHeader }

// Walk calls f with each record from offset on, which is where one begins, until f returns false: by
// their heads alone, so that it costs little where records are long. part is as much of the payload
// as was read with the head, valid until f returns. Nothing is compared with its checksum: where a
// head is damaged, what follows may be no records.
func Walk(src io.ReaderAt, offset, limit int64, f func(s Span, part []byte) bool) error {
	const head, little, much = 64, 4 << 10, 64 << 10
	var buf []byte
	start, want := offset, little // offset of buf[0], and what to read next
	space := make([]byte, much)
	for offset+RecordHeader <= limit {
		at := offset - start
		if at+RecordHeader > int64(len(buf)) {
			n, err := src.ReadAt(space[:min(int64(want), limit-offset)], offset)
			if n < RecordHeader {
				if err == nil || err == io.EOF {
					err = ErrTorn
				}
				return err
			}
			buf, start, at = space[:n], offset, 0
		}
		rec := buf[at:]
		s := Span{Kind(rec[16]), offset, int64(binary.LittleEndian.Uint32(rec))}
		if s.Size > MaxPayload || s.Payload()+s.Size > limit {
			return ErrTorn
		}
		if !f(s, rec[RecordHeader:min(int64(len(rec)), RecordHeader+s.Size)]) {
			return nil
		}
		switch { // what follows is probably as long
		case s.Size < little/4:
			want = much
		case s.Size < little:
			want = little
		default:
			want = head
		}
		offset = s.Payload() + s.Size
	}
	return nil
}

// Release gives the read buffer back: a reader that waits for an idle run holds
// nothing.
func (r *Reader) Release() {
	readbuf.Put(r.buf)
	r.buf = nil
}

// bytes returns n bytes at offset from the buffer, filling it first if needed.
func (r *Reader) bytes(offset int64, n int, limit int64) ([]byte, error) {
	if offset+int64(n) > limit {
		return nil, ErrTorn
	}
	have := r.start + int64(len(r.buf))
	if r.buf == nil || offset < r.start || offset+int64(n) > have {
		want := int(min(max(int64(n), readAhead), limit-offset))
		// A small record in a large buffer keeps it: floods reuse it, and
		// Release drops it when the run is idle. One over the usual size is
		// not kept.
		if cap(r.buf) < want || cap(r.buf) > 4*readAhead && want <= readAhead {
			r.Release()
			r.buf = readbuf.Get(want)
		}
		r.buf = r.buf[:want]
		r.start = offset
		got, err := r.src.ReadAt(r.buf, offset)
		if got < want {
			r.buf = r.buf[:got]
			if err != nil && err != io.EOF {
				return nil, err
			}
			if got < n {
				return nil, ErrTorn
			}
		}
	}
	at := int(offset - r.start)
	return r.buf[at : at+n : at+n], nil
}

// Ready reports whether Next will return a record without reading the file, and
// so without touching the payloads it has returned before.
func (r *Reader) Ready(limit int64) bool {
	at, have := int(r.offset-r.start), len(r.buf)
	if r.buf == nil || at < 0 || at+RecordHeader > have || r.offset >= limit {
		return false
	}
	return at+RecordHeader+int(binary.LittleEndian.Uint32(r.buf[at:])) <= have
}
