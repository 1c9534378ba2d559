package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"time"
	"unicode/utf8"

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

// Parse reads what an event begins with. The whole line must be JSON.
func Parse(line []byte) (head Head, err error) {
	if head, ok := parseWritten(line); ok && json.Valid(line) {
		return head, nil
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return Head{}, pluginapi.Errorf(pluginapi.CodeParse, "event: %w", err)
	}
	return head, nil
}

// parseWritten reads the head as package eventlog writes it, which takes a tenth of the
// time of decoding the line. It does not look at what follows.
func parseWritten(line []byte) (head Head, ok bool) {
	rest := line
	// next cuts a plain string behind a prefix.
	next := func(prefix string) (value string) {
		var found bool
		if rest, found = bytes.CutPrefix(rest, []byte(prefix)); !found {
			ok = false
			return ""
		}
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			ok = false
			return ""
		}
		for _, c := range rest[:end] {
			if c < 0x20 || c >= utf8.RuneSelf || c == '\\' {
				ok = false
			}
		}
		value, rest = string(rest[:end]), rest[end+1:]
		return value
	}
	ok = true
	head.Type = pluginapi.Type(next(`{"type":"`))
	head.RunID = next(`,"run_id":"`)
	var found bool
	if rest, found = bytes.CutPrefix(rest, []byte(`,"seq":`)); !ok || !found {
		return Head{}, false
	}
	digits := bytes.IndexByte(rest, ',')
	if digits < 1 || rest[0] == '0' {
		return Head{}, false
	}
	for _, c := range rest[:digits] {
		if c < '0' || c > '9' || head.Seq > (math.MaxUint64-9)/10 {
			return Head{}, false
		}
		head.Seq = 10*head.Seq + uint64(c-'0')
	}
	rest = rest[digits:]
	at := next(`,"time":"`)
	head.Agent = next(`,"agent":"`)
	if !ok || len(rest) == 0 || head.Time.UnmarshalText([]byte(at)) != nil {
		return Head{}, false
	}
	return head, true
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

// Latest calls f with the events behind an offset, the newest first, until it returns
// false. A last line that has no end yet is left out. It returns the offset behind the
// newest; from if there is none.
func Latest(path string, from int64, f func(line []byte) bool) (size int64) {
	file, err := os.Open(path)
	if err != nil {
		return from
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return from
	}
	size = from
	whole := false // the text behind what was read begins with a whole line
	var rest []byte
	for end, chunk := info.Size(), int64(tailSize); end > from; chunk = min(2*chunk, 1<<20) {
		start := max(from, end-chunk)
		data := make([]byte, end-start, int(end-start)+len(rest))
		if _, err := file.ReadAt(data, start); err != nil && !errors.Is(err, io.EOF) {
			return size
		}
		data = append(data, rest...)
		end = start
		for {
			i := bytes.LastIndexByte(data, '\n')
			if i < 0 {
				break
			}
			if !whole {
				size = start + int64(i) + 1
			} else if line := data[i+1:]; len(line) > 0 && !f(line) {
				return size
			}
			whole, data = true, data[:i]
		}
		rest = data
	}
	if whole && len(rest) > 0 {
		f(rest)
	}
	return size
}
