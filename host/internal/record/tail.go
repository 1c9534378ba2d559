package record

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
)

// Tail writes the last n lines that the agent of a run printed, as it wrote them. Where the journal
// is damaged they are the last before that, and the error says so, with RECORD_DAMAGED.
func Tail(dir *store.Run, n int, w io.Writer) error {
	src, err := OpenJournal(dir)
	if err != nil {
		return err
	}
	defer src.Close()
	reader, err := journal.NewReader(src)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", dir.ID, err)
	}
	if n <= 0 {
		return nil
	}
	n = min(n, math.MaxInt/4)
	beginning := reader.Offset()
	start := tailStart(src, beginning, n)
	reader.Goto(start)
	last, damage := lastLines(reader, src, n)
	if damage != nil && start > beginning {
		// The heads that led here may be damaged themselves.
		reader.Goto(beginning)
		last, damage = lastLines(reader, src, n)
	}
	for i, line := range last {
		if i < len(last)-1 && line[len(line)-1] != '\n' {
			line = append(line, '\n') // two lines without end
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if damage != nil {
		return pluginapi.Errorf(pluginapi.CodeRecordDamaged, "the output of run %s is shown up to where its journal is damaged, at offset %d: %s", dir.ID, damage.Offset, damage.What).
			WithHint("see: amux inspect %s", ShortID(dir.ID))
	}
	return nil
}

// lastLines are the last n lines of the output from where the reader stands, up to the end of the
// journal or to where it is damaged.
func lastLines(reader *journal.Reader, src *File, n int) (last [][]byte, damage *journal.Damage) {
	add := func(line []byte) {
		if last = append(last, line); len(last) > 2*n+100 {
			last = append(last[:0], last[len(last)-n:]...)
		}
	}
	var begun [2][]byte // a line of each stream that has no end yet
	first := 0          // the stream whose line was begun first
	for {
		rec, err := reader.Next(src.Committed())
		damage, _ = errors.AsType[*journal.Damage](err)
		if err != nil {
			break // the end, or what is being written
		}
		stream := 0
		switch rec.Kind {
		case journal.KindStdout:
		case journal.KindStderr:
			stream = 1
		default:
			continue
		}
		for line := range bytes.Lines(rec.Payload) {
			if len(begun[stream]) == 0 {
				line = bytes.Clone(line)
			} else {
				line = append(begun[stream], line...)
				begun[stream] = nil
			}
			if line[len(line)-1] == '\n' {
				if add(line); len(begun[1-stream]) > 0 {
					first = 1 - stream
				}
				continue
			}
			begun[stream] = line
			if len(begun[1-stream]) == 0 {
				first = stream
			}
		}
	}
	for _, stream := range []int{first, 1 - first} {
		if len(begun[stream]) > 0 {
			add(begun[stream])
		}
	}
	return last[max(0, len(last)-n):], damage
}

// output is a record of the agent's output.
type output struct {
	span journal.Span
	ends int   // line breaks in it, at least; 0: none
	open int64 // where the first line begins that is not whole before it; its own offset if none
}

// tailStart is the place in the journal from which on the last n lines can be found. It looks at
// the heads of the records, and at the ends of those that are long.
func tailStart(src *File, beginning int64, n int) int64 {
	var recent []output
	ends := 0 // in recent
	from := src.before(beginning, n)
	begun := from.Begun
	_ = journal.Walk(src, from.Offset, src.Committed(), func(s journal.Span, part []byte) bool { // what it cannot go on with is the end
		stream := 0
		switch s.Kind {
		case journal.KindStdout:
		case journal.KindStderr:
			stream = 1
		default:
			return true
		}
		if s.Size == 0 {
			return true
		}
		some, last, err := breaks(src, s, part)
		if err != nil {
			return false
		}
		o := output{s, some, s.Offset}
		for _, at := range begun {
			if at >= 0 {
				o.open = min(o.open, at)
			}
		}
		switch {
		case last == '\n':
			begun[stream] = -1
		case o.ends > 0 || begun[stream] < 0:
			begun[stream] = s.Offset
		}
		recent = append(recent, o)
		ends += o.ends
		drop := 0
		for ends-recent[drop].ends >= n {
			ends -= recent[drop].ends
			drop++
		}
		recent = recent[drop:]
		return true
	})
	at := len(recent)
	for found := 0; at > 0 && found < n; {
		at--
		found += recent[at].count(src)
	}
	if len(recent) == 0 {
		return beginning
	}
	return recent[at].open
}

// before is where the journal can be entered for the last n lines: a packed one not far from there.
func (s *File) before(beginning int64, n int) journal.Mark {
	if s.Packed != nil {
		if ends, err := s.Packed.Ends(); err == nil {
			if m := s.Packed.Before(int64(n), ends); m != nil {
				return *m
			}
		}
	}
	return journal.Mark{Offset: beginning, Begun: [2]int64{-1, -1}}
}

// count is how many line breaks a record has; what cannot be read has none.
func (o output) count(src *File) int {
	data := make([]byte, o.span.Size)
	if _, err := src.ReadAt(data, o.span.Payload()); err != nil {
		return 0
	}
	return bytes.Count(data, []byte{'\n'})
}

// breaks is the last byte of a record, and how many line breaks it has at least: none if it has
// none.
func breaks(src *File, s journal.Span, part []byte) (some int, last byte, err error) {
	const end = 4 << 10
	if int64(len(part)) < s.Size {
		from := max(0, s.Size-end)
		part = make([]byte, s.Size-from)
		if _, err := src.ReadAt(part, s.Payload()+from); err != nil {
			return 0, 0, err
		}
		if some = bytes.Count(part, []byte{'\n'}); some == 0 && from > 0 {
			all := make([]byte, s.Size)
			if _, err := src.ReadAt(all, s.Payload()); err != nil {
				return 0, 0, err
			}
			some = bytes.Count(all, []byte{'\n'})
		}
		return some, part[len(part)-1], nil
	}
	return bytes.Count(part, []byte{'\n'}), part[len(part)-1], nil
}
