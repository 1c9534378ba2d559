package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/sys/aside"
)

// Checked is what Check has found.
type Checked struct {
	Size   int64 // of the log
	Summed int64 // bytes that have a checksum
	Events uint64
	Damage []*Damage
}

// Check compares a log that nobody writes any more with its sums, and the events
// behind the last of these with what events look like. A log that ends within a
// line is damaged.
func Check(path, runID string) (Checked, error) {
	file, err := os.Open(path)
	if err != nil {
		return Checked{}, err
	}
	defer file.Close()
	blocks, damage, err := readSums(SumsPath(path))
	if err != nil {
		return Checked{}, err
	}
	info, err := file.Stat()
	if err != nil {
		return Checked{}, err
	}
	c := Checked{Size: info.Size()}
	if damage != nil {
		c.Damage = append(c.Damage, damage)
	}
	var from block
	for _, b := range blocks {
		if b.end > c.Size {
			c.Damage = append(c.Damage, &Damage{Offset: c.Size, Size: b.end - c.Size, What: "it ends where its checksums go on"})
			return c, nil
		}
		good, err := b.matches(file, from)
		if err != nil {
			return c, err
		}
		if !good {
			c.Damage = append(c.Damage, b.damage(from))
		}
		c.Summed, c.Events, from = b.end, b.count, b
	}
	whole, count, what, err := checkTail(file, from, runID)
	if err != nil {
		return c, err
	}
	if c.Events = count; what == "" && whole < c.Size {
		what = "it ends within an event"
	}
	if what != "" {
		c.Damage = append(c.Damage, &Damage{Offset: whole, Size: c.Size - whole, What: what})
	}
	return c, nil
}

// CheckEnd is Check for the last block alone: it costs little, however long the log.
func CheckEnd(path string) (*Damage, error) {
	sums, err := os.Open(SumsPath(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer sums.Close()
	info, err := sums.Stat()
	if err != nil || info.Size() < sumsHeader+sumsEntry || (info.Size()-sumsHeader)%sumsEntry != 0 {
		return nil, err // there is no last block; Check says more
	}
	n := min(2*sumsEntry, info.Size()-sumsHeader)
	data := make([]byte, n)
	if _, err := sums.ReadAt(data, info.Size()-n); err != nil {
		return nil, err
	}
	var from block
	if n > sumsEntry {
		var ok bool
		if from, ok = parseBlock(data, from); !ok {
			return &Damage{Sums: true, Offset: info.Size() - n, What: "an entry does not match its checksum"}, nil
		}
		data = data[sumsEntry:]
	}
	last, ok := parseBlock(data, from)
	if !ok {
		return &Damage{Sums: true, Offset: info.Size() - sumsEntry, What: "an entry does not match its checksum"}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	good, err := last.matches(file, from)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		info, _ := file.Stat()
		return &Damage{Offset: info.Size(), Size: last.end - info.Size(), What: "it ends where its checksums go on"}, nil
	case err != nil || good:
		return nil, err
	}
	return last.damage(from), nil
}

// matches reports whether a block is as it was written. from is the one before.
func (b block) matches(file io.ReaderAt, from block) (bool, error) {
	sum, err := sumOf(file, from.end, b.end)
	return sum == b.sum, err
}

func (b block) damage(from block) *Damage {
	return &Damage{Offset: from.end, Size: b.end - from.end, What: fmt.Sprintf("%d bytes do not match their checksum", b.end-from.end)}
}

// checkTail looks at the events behind the last block. whole is the offset behind the
// last good one, what the reason why the next is invalid.
func checkTail(file io.ReaderAt, last block, runID string) (whole int64, count uint64, what string, err error) {
	whole, count = last.end, last.count
	in := bufio.NewReaderSize(io.NewSectionReader(file, whole, 1<<62), 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, count, "", nil
		}
		if err != nil {
			return whole, count, "", err
		}
		if !isEvent(line, runID, count+1) {
			return whole, count, fmt.Sprintf("what stands there is not event %d of the run", count+1), nil
		}
		whole += int64(len(line))
		count++
	}
}

// isEvent reports whether line is an event as Log writes it.
func isEvent(line []byte, runID string, seq uint64) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`))
	i := bytes.IndexByte(rest, '"')
	if !ok || i < 0 {
		return false
	}
	head := append(strconv.AppendQuote([]byte(`,"run_id":`), runID), `,"seq":`...)
	head = append(strconv.AppendUint(head, seq, 10), `,"time":"`...)
	return bytes.HasPrefix(rest[i+1:], head) && json.Valid(line)
}

// recover checks what a writer finds, and cuts off what cannot be gone on with. What
// is cut is kept, but for a torn last line: the journal has what it was made of.
func (l *Log) recover(path, runID string) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return removeSums(l.sums.path) // of events that never reached the disk
	}
	blocks, _, err := readSums(l.sums.path)
	if err != nil {
		return err
	}
	var from block
	var damage *Damage
	entries := int64(0)
	for _, b := range blocks {
		if b.end > info.Size() {
			break // its writer was killed between entry and events
		}
		good, err := b.matches(l.file, from)
		if err != nil {
			return err
		}
		if !good {
			damage = b.damage(from)
			break
		}
		from = b
		entries++
	}
	if damage == nil {
		whole, _, what, err := checkTail(l.file, from, runID)
		if err != nil {
			return err
		}
		if what != "" {
			damage = &Damage{Offset: whole, What: what}
		}
	}
	if damage != nil {
		name := fmt.Sprintf("%s.bad-%d", strings.TrimSuffix(path, ".jsonl"), damage.Offset)
		kept, err := aside.Keep(l.file, damage.Offset, name)
		if err != nil {
			return fmt.Errorf("keep what is behind offset %d: %w", damage.Offset, err)
		}
		damage.Size, damage.Kept = info.Size()-damage.Offset, filepath.Base(kept)
		if err := l.file.Truncate(damage.Offset); err != nil {
			return err
		}
		l.cut = damage
	}
	l.sums.from = from.end
	if entries == 0 {
		return removeSums(l.sums.path)
	}
	if l.sums.file, err = l.open(l.sums.path, os.O_RDWR, 0o600); err != nil {
		return err
	}
	l.sums.size = sumsHeader + entries*sumsEntry
	return l.sums.file.Truncate(l.sums.size)
}

func removeSums(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Cut is what Open has cut off because it was damaged; nil if that was nothing.
func (l *Log) Cut() *Damage { return l.cut }
