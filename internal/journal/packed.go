package journal

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/amux-dev/amux/internal/sys/checksum"
)

// A journal that nobody writes any more can be packed: it is the same bytes in less room. The
// file is a header (16 bytes: magic, version, size of a piece), pieces, an index with an entry for
// each and a trailer. A piece is so many bytes of the journal, the last one what is left, deflated
// (RFC 1951) by itself, so that any place of the journal costs one piece. Numbers are little
// endian.
const (
	// PieceSize is the usual size of a piece.
	PieceSize  = 256 << 10
	leastPiece = 1 << 10
	mostPiece  = 1 << 20
	entrySize  = 44 // length and CRC-32C of the piece (4 bytes each), Mark (4 times 8), CRC-32C of these 40
	trailSize  = 32 // size of the journal (8), offset of the index (8), number of pieces (8), 4 of zero, CRC-32C of these 28
)

// mostPacked is how long a piece can be that deflate makes no shorter.
func mostPacked(piece int64) int64 { return piece + piece>>10 + 64 }

var packedMagic = [8]byte{'A', 'M', 'U', 'X', 'P', 'A', 'C', 'K'}

// Mark says what was before a record, so that a reader can begin there.
type Mark struct {
	Offset int64 // of the record
	Ends   int64 // of lines, before it
	// Begun are the records in which a line of stdout and of stderr began that has no end
	// before it; -1 if there is none.
	Begun [2]int64
}

// stream is 0 for stdout and 1 for stderr; ok says that a record is of one.
func stream(kind Kind) (n int, ok bool) {
	switch kind {
	case KindStdout:
		return 0, true
	case KindStderr:
		return 1, true
	}
	return 0, false
}

// learn takes a record into account.
func (m *Mark) learn(rec Record) {
	n, ok := stream(rec.Kind)
	if !ok || len(rec.Payload) == 0 {
		return
	}
	ends := bytes.Count(rec.Payload, []byte{'\n'})
	m.Ends += int64(ends)
	switch {
	case rec.Payload[len(rec.Payload)-1] == '\n':
		m.Begun[n] = -1
	case ends > 0 || m.Begun[n] < 0:
		m.Begun[n] = rec.Offset
	}
}

// marks are those of the first record of each piece, or of the end where none begins in it. The
// journal is read, and has to be whole.
func marks(src io.ReaderAt, size, piece int64) ([]Mark, error) {
	r, err := NewReader(src)
	if err != nil {
		return nil, err
	}
	now := Mark{Begun: [2]int64{-1, -1}}
	var found []Mark
	for {
		now.Offset = r.Offset()
		for int64(len(found))*piece <= now.Offset && int64(len(found))*piece < size {
			found = append(found, now)
		}
		rec, err := r.Next(size)
		switch {
		case err == io.EOF:
			for int64(len(found))*piece < size {
				found = append(found, now)
			}
			return found, nil
		case err != nil:
			return nil, err
		}
		now.learn(rec)
	}
}

// Pack writes a journal of that size in less room, in pieces of so many bytes. One that is not
// whole is refused: its damage is to be found where it is.
func Pack(dst io.Writer, src io.ReaderAt, size, piece int64) error {
	begins, err := marks(src, size, piece)
	if err != nil {
		return err
	}
	header := binary.LittleEndian.AppendUint32(append([]byte{}, packedMagic[:]...), Version)
	if _, err := dst.Write(binary.LittleEndian.AppendUint32(header, uint32(piece))); err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		return err
	}
	raw := make([]byte, piece)
	at := int64(headerSize)
	var index []byte
	for i, mark := range begins {
		part := raw[:min(piece, size-int64(i)*piece)]
		if n, err := src.ReadAt(part, int64(i)*piece); n < len(part) {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		packed.Reset()
		w.Reset(&packed)
		if _, err := w.Write(part); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if _, err := dst.Write(packed.Bytes()); err != nil {
			return err
		}
		from := len(index)
		index = binary.LittleEndian.AppendUint32(index, uint32(packed.Len()))
		index = binary.LittleEndian.AppendUint32(index, checksum.Of(packed.Bytes()))
		for _, n := range []int64{mark.Offset, mark.Ends, mark.Begun[0], mark.Begun[1]} {
			index = binary.LittleEndian.AppendUint64(index, uint64(n))
		}
		index = binary.LittleEndian.AppendUint32(index, checksum.Of(index[from:]))
		at += int64(packed.Len())
	}
	trail := binary.LittleEndian.AppendUint64(nil, uint64(size))
	trail = binary.LittleEndian.AppendUint64(trail, uint64(at))
	trail = binary.LittleEndian.AppendUint64(trail, uint64(len(begins)))
	trail = binary.LittleEndian.AppendUint32(trail, 0)
	_, err = dst.Write(append(index, binary.LittleEndian.AppendUint32(trail, checksum.Of(trail))...))
	return err
}

// Packed is a packed journal, which is read as if it were not. What is not as it was written is
// a *Damage. It is safe for concurrent use.
type Packed struct {
	src    io.ReaderAt
	size   int64
	piece  int64 // size of one
	pieces []piece

	mu     sync.Mutex
	has    int // the piece in raw; -1 for none
	raw    []byte
	packed []byte
	flate  io.ReadCloser
}

type piece struct {
	offset int64
	length int
	sum    uint32
	mark   Mark
}

// IsPacked reports whether a journal is packed.
func IsPacked(src io.ReaderAt) bool {
	var head [8]byte
	n, _ := src.ReadAt(head[:], 0)
	return n == len(head) && head == packedMagic
}

// maxPieces bounds the index that is read: that of a journal of 2 TB.
const maxPieces = 8 << 20

// OpenPacked opens a packed journal, of a file of that size.
func OpenPacked(src io.ReaderAt, fileSize int64) (*Packed, error) {
	damage := func(what string) error { return &Damage{File: "journal", What: "it is packed, and " + what} }
	var head [headerSize]byte
	if n, err := src.ReadAt(head[:], 0); n < headerSize {
		return nil, errors.Join(ErrFormat, err)
	}
	if [8]byte(head[:]) != packedMagic || binary.LittleEndian.Uint32(head[8:]) != Version {
		return nil, ErrFormat
	}
	one := int64(binary.LittleEndian.Uint32(head[12:]))
	if one < leastPiece || one > mostPiece {
		return nil, damage("its header makes no sense")
	}
	if fileSize < headerSize+trailSize {
		return nil, damage("has no end")
	}
	var trail [trailSize]byte
	if n, err := src.ReadAt(trail[:], fileSize-trailSize); n < trailSize {
		return nil, errors.Join(damage("its end cannot be read"), err)
	}
	size, at, count := int64(binary.LittleEndian.Uint64(trail[:])), int64(binary.LittleEndian.Uint64(trail[8:])), int64(binary.LittleEndian.Uint64(trail[16:]))
	switch {
	case binary.LittleEndian.Uint32(trail[28:]) != checksum.Of(trail[:28]):
		return nil, damage("its end does not match its checksum")
	case count < 1 || count > maxPieces || size <= (count-1)*one || size > count*one || at != fileSize-trailSize-count*entrySize:
		return nil, damage("its end makes no sense")
	}
	index := make([]byte, count*entrySize)
	if n, err := src.ReadAt(index, at); n < len(index) {
		return nil, errors.Join(damage("its index cannot be read"), err)
	}
	p := &Packed{src: src, size: size, piece: one, pieces: make([]piece, count), has: -1}
	offset := int64(headerSize)
	for i := range p.pieces {
		e := index[i*entrySize : (i+1)*entrySize]
		number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(e[at:])) }
		p.pieces[i] = piece{
			offset, int(binary.LittleEndian.Uint32(e)), binary.LittleEndian.Uint32(e[4:]), Mark{number(8), number(16), [2]int64{number(24), number(32)}},
		}
		if binary.LittleEndian.Uint32(e[40:]) != checksum.Of(e[:40]) {
			return nil, damage(fmt.Sprintf("entry %d of its index does not match its checksum", i))
		}
		m := p.pieces[i].mark
		if int64(p.pieces[i].length) > mostPacked(one) || m.Offset < headerSize || m.Offset > size || m.Ends < 0 || max(m.Begun[0], m.Begun[1]) >= size || min(m.Begun[0], m.Begun[1]) < -1 {
			return nil, damage(fmt.Sprintf("entry %d of its index makes no sense", i))
		}
		offset += int64(p.pieces[i].length)
	}
	if offset != at {
		return nil, damage("its index makes no sense")
	}
	return p, nil
}

// Size is that of the journal.
func (p *Packed) Size() int64 { return p.size }

// Before is the last mark before which so many ends of lines are left, or nil if there is none.
func (p *Packed) Before(ends, total int64) *Mark {
	for i := len(p.pieces) - 1; i >= 0; i-- {
		if m := &p.pieces[i].mark; m.Offset < p.size && total-m.Ends >= ends {
			return m
		}
	}
	return nil
}

// Ends is how many lines have an end in the output.
func (p *Packed) Ends() (int64, error) {
	m := p.pieces[len(p.pieces)-1].mark
	r := &Reader{src: p, offset: m.Offset}
	for {
		rec, err := r.Next(p.size)
		if err == io.EOF {
			return m.Ends, nil
		}
		if err != nil {
			return 0, err
		}
		m.learn(rec)
	}
}

// ReadAt is that of io.ReaderAt.
func (p *Packed) ReadAt(b []byte, offset int64) (n int, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n < len(b) {
		if offset < 0 {
			return n, errors.New("read before the beginning of a journal")
		}
		if offset >= p.size {
			return n, io.EOF
		}
		i := int(offset / p.piece)
		if err := p.load(i); err != nil {
			return n, err
		}
		copied := copy(b[n:], p.raw[offset-int64(i)*p.piece:])
		n, offset = n+copied, offset+int64(copied)
	}
	return n, nil
}

// load has the piece i in raw.
func (p *Packed) load(i int) error {
	if p.has == i {
		return nil
	}
	p.has = -1
	if p.flate == nil {
		p.raw, p.packed, p.flate = make([]byte, 0, p.piece), make([]byte, mostPacked(p.piece)), flate.NewReader(nil)
	}
	e, start := p.pieces[i], int64(i)*p.piece
	damage := func(what string) error { return &Damage{File: "journal", Offset: start, What: what} }
	packed := p.packed[:e.length]
	if n, err := p.src.ReadAt(packed, e.offset); n < len(packed) {
		if err == nil || err == io.EOF {
			return damage("a packed piece is cut off")
		}
		return err
	}
	if checksum.Of(packed) != e.sum {
		return damage("a packed piece does not match its checksum")
	}
	if err := p.flate.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return err
	}
	p.raw = p.raw[:min(p.piece, p.size-start)]
	if _, err := io.ReadFull(p.flate, p.raw); err != nil {
		return damage("a packed piece cannot be unpacked")
	}
	if n, err := p.flate.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return damage("a packed piece has too much in it")
	}
	p.has = i
	return nil
}
