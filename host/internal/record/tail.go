package record

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Tail writes the last n lines that the agent of a run printed, as it wrote them. Where the journal
// is damaged they are the last before that, and the error says so, with RECORD_DAMAGED.
func Tail(dir *store.Run, n int, w io.Writer) error {
	src, err := Open(dir.Path("journal"))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", dir.ID, fault.Plain(err))
	}
	defer src.Close()
	reader, err := journal.NewReader(src)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "journal of run %s: %w", dir.ID, err)
	}
	if n <= 0 {
		return nil
	}
	reader.Goto(tailStart(reader, src, n))
	last := make([][]byte, 0, min(n, 1000))
	add := func(line []byte) {
		if len(last) == n {
			last = slices.Delete(last, 0, 1)
		}
		last = append(last, line)
	}
	var begun [2][]byte // a line of each stream that has no end yet
	first := 0          // the stream whose line was begun first
	var damaged error
	for {
		rec, err := reader.Next(src.Committed())
		if damage, ok := errors.AsType[*journal.Damage](err); ok {
			damaged = pluginapi.Errorf(pluginapi.CodeRecordDamaged, "the output of run %s is shown up to where its journal is damaged, at offset %d: %s", dir.ID, damage.Offset, damage.What).
				WithHint("see: amux inspect %s", ShortID(dir.ID))
		}
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
	for i, line := range last {
		if i < len(last)-1 && line[len(line)-1] != '\n' {
			line = append(line, '\n') // two lines without end
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return damaged
}

// output is a record of the agent's output.
type output struct {
	offset int64
	ends   int   // line breaks in it
	open   int64 // where the first line begins that is not whole before it; its own offset if none
}

// tailStart is the place in the journal from which on the last n lines can be found. It
// counts line breaks, which is much cheaper than making lines, and keeps what the last n of
// them need.
func tailStart(reader *journal.Reader, src *File, n int) int64 {
	var recent []output
	ends := 0                 // in recent
	begun := [2]int64{-1, -1} // the record in which a line of each stream began that has no end yet
	for {
		rec, err := reader.Next(src.Committed())
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
		o := output{rec.Offset, bytes.Count(rec.Payload, []byte{'\n'}), rec.Offset}
		for _, at := range begun {
			if at >= 0 {
				o.open = min(o.open, at)
			}
		}
		switch {
		case len(rec.Payload) == 0:
			continue
		case rec.Payload[len(rec.Payload)-1] == '\n':
			begun[stream] = -1
		case o.ends > 0 || begun[stream] < 0:
			begun[stream] = rec.Offset
		}
		recent = append(recent, o)
		ends += o.ends
		drop := 0
		for ends-recent[drop].ends >= n {
			ends -= recent[drop].ends
			drop++
		}
		recent = recent[drop:]
	}
	if len(recent) == 0 {
		return reader.Offset()
	}
	return recent[0].open
}
