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
	from := src.before(beginning, n)
	if start, ok := nearEnd(src, from, n, max(256, 2*min(n, 16<<10))); ok {
		return start
	}
	l := latest{src: src, n: n, begun: from.Begun}
	_ = journal.Walk(src, from.Offset, src.Committed(), func(s journal.Span, part []byte) bool { // what it cannot go on with is the end
		stream, ok := streamOf(s)
		return !ok || l.add(s, stream, part)
	})
	start, _ := l.start(beginning)
	return start
}

// nearEnd is tailStart by the ends of so many last records alone, where they tell enough.
func nearEnd(src *File, from journal.Mark, n, records int) (start int64, ok bool) {
	last := make([]journal.Span, 0, records)
	at := 0                     // the oldest in last, once it is full
	var dropped [2]journal.Span // the newest of each stream that is not in it
	_ = journal.Walk(src, from.Offset, src.Committed(), func(s journal.Span, _ []byte) bool {
		switch _, ok := streamOf(s); {
		case !ok:
		case len(last) < cap(last):
			last = append(last, s)
		default:
			old := last[at]
			stream, _ := streamOf(old)
			dropped[stream], last[at] = old, s
			at = (at + 1) % len(last)
		}
		return true
	})
	l := latest{src: src, n: n, begun: from.Begun}
	for stream, s := range dropped {
		if s.Size == 0 {
			continue
		}
		switch some, end, err := breaks(src, s, nil); {
		case err != nil:
			return 0, false
		case end == '\n':
			l.begun[stream] = -1
		case some > 0:
			l.begun[stream] = s.Offset
		default:
			return 0, false // a line goes on in it that began before
		}
	}
	for i := range last {
		s := last[(at+i)%len(last)]
		if stream, _ := streamOf(s); !l.add(s, stream, nil) {
			return 0, false
		}
	}
	start, found := l.start(from.Offset)
	return start, found >= n || dropped == [2]journal.Span{}
}

// streamOf is 0 for a record of stdout that is not empty, 1 for one of stderr.
func streamOf(s journal.Span) (stream int, ok bool) {
	if s.Size == 0 {
		return 0, false
	}
	switch s.Kind {
	case journal.KindStdout:
		return 0, true
	case journal.KindStderr:
		return 1, true
	}
	return 0, false
}

// latest has the latest records of an output with n line breaks, or a few more.
type latest struct {
	src    *File
	n      int
	recent []output
	ends   int      // in recent
	begun  [2]int64 // the record in which a line of each stream began that has no end yet; -1 if none has
}

// add takes the next record; false: it cannot be read.
func (l *latest) add(s journal.Span, stream int, part []byte) bool {
	some, last, err := breaks(l.src, s, part)
	if err != nil {
		return false
	}
	o := output{s, some, s.Offset}
	for _, at := range l.begun {
		if at >= 0 {
			o.open = min(o.open, at)
		}
	}
	switch {
	case last == '\n':
		l.begun[stream] = -1
	case o.ends > 0 || l.begun[stream] < 0:
		l.begun[stream] = s.Offset
	}
	l.recent = append(l.recent, o)
	l.ends += o.ends
	drop := 0
	for l.ends-l.recent[drop].ends >= l.n {
		l.ends -= l.recent[drop].ends
		drop++
	}
	l.recent = l.recent[drop:]
	return true
}

// start is where the last n lines begin, or as many as there are, and how many line breaks follow.
func (l *latest) start(beginning int64) (start int64, found int) {
	at := len(l.recent)
	for at > 0 && found < l.n {
		at--
		found += l.recent[at].count(l.src)
	}
	if len(l.recent) == 0 {
		return beginning, 0
	}
	return l.recent[at].open, found
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
