package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// Head is what every event begins with.
type Head struct {
	Type  pluginapi.Type `json:"type"`
	RunID string         `json:"run_id"`
	Seq   uint64         `json:"seq"`
	Time  time.Time      `json:"time"`
	Agent string         `json:"agent"`
}

// Parse reads what an event begins with.
func Parse(line []byte) (head Head, err error) {
	if err := json.Unmarshal(line, &head); err != nil {
		return Head{}, pluginapi.Errorf(pluginapi.CodeParse, "event: %w", err)
	}
	return head, nil
}

// IsType reports whether line is an event of that type; every event begins with
// its type.
func IsType(line []byte, t string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`))
	return ok && len(rest) > len(t) && string(rest[:len(t)]) == t && rest[len(t)] == '"'
}

// tailSize is how much of the end of an event log is looked at first. The last
// event of a run that has ended fits in it.
const tailSize = 8 << 10

// readTail calls f with the events, the newest first, until it returns false. A
// last line that has no end yet is left out.
func readTail(path string, f func(line []byte) bool) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return
	}
	whole := false // the text behind what was read begins with a whole line
	var rest []byte
	for end, size := info.Size(), int64(tailSize); end > 0; size = min(2*size, 1<<20) {
		from := max(0, end-size)
		data := make([]byte, end-from, int(end-from)+len(rest))
		if _, err := file.ReadAt(data, from); err != nil && !errors.Is(err, io.EOF) {
			return
		}
		data = append(data, rest...)
		end = from
		for {
			i := bytes.LastIndexByte(data, '\n')
			if i < 0 {
				break
			}
			if line := data[i+1:]; whole && len(line) > 0 && !f(line) {
				return
			}
			whole, data = true, data[:i]
		}
		rest = data
	}
	if whole && len(rest) > 0 {
		f(rest)
	}
}
