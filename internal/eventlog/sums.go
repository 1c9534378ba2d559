package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/amux-dev/amux/internal/sys/checksum"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/pluginapi/code"
)

// The sums of a log stand beside it, in events.sum: a header, and an entry for each
// block of whole events. An entry is written before the end of its block, so that
// whoever sees an event that ends a block can check it. What is behind the last
// entry was written by a process that was killed, or by an amux that knew no sums.
//
// An entry is the offset behind the block (8 bytes, little endian), the number of
// events up to there (8), the CRC-32C of the block (4) and of these 20 bytes (4).
const (
	sumsHeader = 16
	sumsEntry  = 24
	// blockSize is how long a block is at least, unless an event ends it that people
	// wait for, see endsBlock.
	blockSize = 64 << 10
)

var sumsMagic = [sumsHeader]byte{'A', 'M', 'U', 'X', 'S', 'U', 'M', 'S', 1}

// endsBlock are the events that a block ends with, whatever its length: those at
// which the log is to be on the disk.
var endsBlock = map[string]bool{
	code.EventTurnEnd: true, code.EventRunEnd: true, code.EventApprovalRequest: true, code.EventInputRequired: true,
}

// SumsPath is where the sums of the log at path are.
func SumsPath(path string) string { return strings.TrimSuffix(path, ".jsonl") + ".sum" }

// block is what one entry says.
type block struct {
	end   int64
	count uint64
	sum   uint32
}

func (b block) append(to []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint64(to, uint64(b.end))
	to = binary.LittleEndian.AppendUint64(to, b.count)
	to = binary.LittleEndian.AppendUint32(to, b.sum)
	return binary.LittleEndian.AppendUint32(to, checksum.Of(to[at:]))
}

// parseBlock reads an entry that follows before.
func parseBlock(data []byte, before block) (b block, ok bool) {
	b = block{
		int64(binary.LittleEndian.Uint64(data)), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint32(data[16:]),
	}
	return b, binary.LittleEndian.Uint32(data[20:]) == checksum.Of(data[:20]) &&
		b.end > before.end && b.count > before.count
}

// maxSums bounds what is read of a file of sums: those of a terabyte of events.
const maxSums = 512 << 20

// readSums reads the entries of the file at path; none if there is no such file.
func readSums(path string) ([]block, *Damage, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSums))
	if err != nil {
		return nil, nil, err
	}
	blocks, damage := parseSums(data)
	return blocks, damage, nil
}

// parseSums reads the entries in data up to the first that is not as it was written.
func parseSums(data []byte) (blocks []block, damage *Damage) {
	if len(data) == 0 {
		return nil, nil
	}
	if len(data) < sumsHeader || [sumsHeader]byte(data) != sumsMagic {
		return nil, &Damage{Sums: true, What: "the header is not that of checksums"}
	}
	var last block
	for at := sumsHeader; at < len(data); at += sumsEntry {
		if at+sumsEntry > len(data) {
			return blocks, &Damage{Sums: true, Offset: int64(at), What: "it ends within an entry"}
		}
		b, ok := parseBlock(data[at:], last)
		if !ok {
			return blocks, &Damage{Sums: true, Offset: int64(at), What: "an entry does not match its checksum"}
		}
		blocks, last = append(blocks, b), b
	}
	return blocks, nil
}

// sums is what the writer of a log knows of its blocks.
type sums struct {
	path string
	file rawio.File // nil until the first block; changed with the log's mu held
	size int64      // without an entry that is not committed

	from  int64  // where the open block begins
	sum   uint32 // of its committed bytes
	ends  bool   // the batch ends it, whatever its length
	early bool   // an entry behind size was written

	flushed uint32 // of its bytes up to the log's base
	stale   bool   // flushed is of more than that
}

// seal writes the entry of a block.
func (l *Log) seal(b block) error {
	s := &l.sums
	if s.file == nil {
		file, err := l.open(s.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		l.mu.Lock()
		s.file = file
		l.mu.Unlock()
	}
	entry := make([]byte, 0, sumsHeader+sumsEntry)
	if s.size == 0 {
		entry = append(entry, sumsMagic[:]...)
	}
	s.early = true
	_, err := s.file.WriteAt(b.append(entry), s.size)
	return err
}

// sealed notes that the last entry is committed.
func (l *Log) sealed() {
	s := &l.sums
	if s.size == 0 {
		s.size = sumsHeader
	}
	s.size += sumsEntry
	s.from, s.sum, s.flushed, s.ends, s.early = l.base, 0, 0, false, false
}

// unseal takes back an entry that was not committed.
func (l *Log) unseal() {
	s := &l.sums
	if s.early {
		_ = s.file.Truncate(s.size) // what stays behind is overwritten
	}
	s.flushed, s.stale, s.ends, s.early = s.sum, false, false, false
}

// rehash sums up again what the file has of the open block.
func (l *Log) rehash() (err error) {
	if l.sums.stale {
		l.sums.flushed, err = sumOf(l.file, l.sums.from, l.base)
		l.sums.stale = err != nil
	}
	return err
}

// sumOf is the CRC-32C of a part of a file.
func sumOf(file io.ReaderAt, from, to int64) (uint32, error) {
	h := checksum.New()
	n, err := io.Copy(h, io.NewSectionReader(file, from, to-from))
	if err == nil && n < to-from {
		err = io.ErrUnexpectedEOF
	}
	return h.Sum32(), err
}

// Damage is a place where a log, or the file of its sums, is not as it was written.
type Damage struct {
	Sums   bool  // it is the file of sums
	Offset int64 // where it begins; that of a block, where a sum tells
	Size   int64 // bytes that it may be in, or that were kept
	Kept   string
	What   string
}

func (d *Damage) Error() string {
	file := "events.jsonl"
	if d.Sums {
		file = "events.sum"
	}
	return fmt.Sprintf("%s is damaged at offset %d: %s", file, d.Offset, d.What)
}
