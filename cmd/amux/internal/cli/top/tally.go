package top

import (
	"bytes"
	"encoding/json"
	"os"
)

// tally adds up what a live run has cost. It goes on where it stopped at the last look.
type tally struct {
	offset int64
	usd    float64
}

// mostRead is how much of a record is read at a look: a record of a day takes some.
const mostRead = 16 << 20

var costEvent = []byte(`{"type":"cost",`)

// read reads on in the run's events, and returns what the run has cost so far.
func (t *tally) read(events string) float64 {
	file, err := os.Open(events)
	if err != nil { // it is being removed
		return t.usd
	}
	defer file.Close()
	buf := make([]byte, 64<<10)
	var rest []byte
	for end := t.offset + mostRead; t.offset+int64(len(rest)) < end; {
		n, err := file.ReadAt(buf, t.offset+int64(len(rest)))
		rest = append(rest, buf[:n]...)
		for {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			if !whole {
				break
			}
			t.add(line)
			t.offset += int64(len(line)) + 1
			rest = after
		}
		if err != nil { // mostly io.EOF
			return t.usd
		}
	}
	if len(rest) > mostRead/2 {
		t.offset += int64(len(rest)) // of a line that is no cost
	}
	return t.usd
}

func (t *tally) add(line []byte) {
	if !bytes.HasPrefix(line, costEvent) {
		return
	}
	var e struct{ Cost struct{ USD float64 } }
	if json.Unmarshal(line, &e) == nil {
		t.usd += e.Cost.USD
	}
}
