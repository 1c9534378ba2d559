package record

import (
	"bytes"
	"io"
	"slices"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Tail writes the last n lines that the agent of a run printed, as it wrote them.
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
	last := make([][]byte, 0, min(n, 1000))
	add := func(line []byte) {
		if len(last) == n {
			last = slices.Delete(last, 0, 1)
		}
		last = append(last, line)
	}
	var begun [2][]byte // a line of each stream that has no end yet
	first := 0          // the stream whose line was begun first
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
		for line := range bytes.Lines(rec.Payload) {
			if len(begun[stream]) == 0 {
				line = bytes.Clone(line)
			} else {
				line = append(begun[stream], line...)
				begun[stream] = nil
			}
			if line[len(line)-1] == '\n' {
				add(line)
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
	return nil
}
