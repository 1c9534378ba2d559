package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"
	"testing/iotest"
)

// printed is what the bridge prints of a server's events, which it reads as they come.
func printed(t *testing.T, body io.Reader) string {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var out bytes.Buffer
	b := &bridge{stderr: null, failure: make(chan error, 1)}
	b.out = newOutput(&out, func(err error) { t.Error(err) })
	if b.stream(body) == nil {
		t.Error("the end of the events is no error")
	}
	b.out.flush()
	return out.String()
}

// Whatever a server sends, each event is one line; how it comes in pieces changes nothing,
// and an event whose data is JSON is a line of JSON.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"a\":1}\n\n"))
	f.Add([]byte("event: x\r\nid: 7\r\ndata: {\"a\":\r\ndata: [1]}\r\n\r\n: ping\n\ndata: {}"))
	f.Add([]byte("data\n\ndata:\n\nretry: 5\nnonsense\n\xff: \x00\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		out := printed(t, bytes.NewReader(body))
		if pieces := printed(t, iotest.OneByteReader(bytes.NewReader(body))); pieces != out {
			t.Errorf("in pieces\n%q\nat once\n%q", pieces, out)
		}
		for line := range bytes.Lines([]byte(out)) {
			event, isEvent := bytes.CutPrefix(line, []byte(`{"type":"event","event":`))
			data, whole := bytes.CutSuffix(event, []byte("}\n"))
			switch {
			case isEvent && !whole && !bytes.HasSuffix([]byte(out), line):
				t.Errorf("an event without its end: %q", line)
			case isEvent && whole && json.Valid(data) != json.Valid(line):
				t.Errorf("not a line of JSON: %q", line)
			}
		}
	})
}
