package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi/code"
)

// The quick way of reading a text is that of JSON, for whatever an event may hold.
func FuzzDecode(f *testing.F) {
	const head = `{"type":"text_delta","run_id":"01M88EQX0N2TBQ3JMMDHCPP0AK","seq":18,"agent":"claude"`
	for _, line := range []string{
		head + `,"delta":"a"}`, head + `,"delta":"a\nb\t\"\\\/"}`, head + `,"delta":"\u00e9"}`, head + `,"delta":"\""}`, head + `,"delta":"a\\"}`, head + `,"delta":"a","b":1}`, head + `,"delta":"a\`,
		head + `,"delta":"a"b"}`, head + `,"delta":1}`, head + `,"parent_id":"x","delta":"a"}`, head + `,"a":{"b":1,"delta":"a"}}`, head + `,"delta":"` + "\xff" + `"}`,
		head + `,"message_id":"m","text":"a\nb"}`, head + `,"message_id":"m","aborted":true,"text":"a"}`, head + `,"text":"a","aborted":true}`, head + `,"x":",\"text\":\"","text":"a"}`, `{}`, ``,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) == 0 || !json.Valid(line) {
			return // of a record each line was found to be JSON
		}
		var want event
		if json.Unmarshal(line, &want) != nil {
			return
		}
		if delta, ok := plainDelta(line); ok && string(delta) != want.Delta && !repeats(line, "delta") {
			t.Fatalf("%q: the delta is %q, and by JSON %q", line, delta, want.Delta)
		}
		stop, ok := decode(code.EventMessageStop, line)
		if !ok || (stop.Text != want.Text || stop.Aborted != want.Aborted || stop.ParentID != want.ParentID) && !repeats(line, "text") {
			t.Fatalf("%q: %v %q, and by JSON %q", line, ok, stop.Text, want.Text)
		}
	})
}

// repeats reports whether a line has a key twice, or one that JSON takes for it. Nobody writes that.
func repeats(line []byte, key string) bool {
	decoder := json.NewDecoder(bytes.NewReader(line))
	found := 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return found > 1
		}
		if word, ok := token.(string); ok && strings.EqualFold(word, key) {
			found++
		}
	}
}
