package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// A request and a reply are one line; what was understood says the same when it is
// written again.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"protocol":1,"version":"1","op":"run","world":{"config_dir":"/c","env":["A=b"],"umask":18},"run":{"spec":{"agent":"demo"},"env":{"A":"b"},"mcp":[{"env":{"A":"b"}}]}}` + "\n",
		`{"protocol":1,"version":"1","pid":7,"run_id":"x","error":{"code":"INTERNAL","message":"m"}}` + "\n",
		"{}\n{}\n", "null\n", "{\"world\":null}\n", "{", "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := readLine(bufio.NewReaderSize(bytes.NewReader(data), 16))
		whole, _, ended := bytes.Cut(data, []byte("\n"))
		if ended != (err == nil) || ended && !bytes.Equal(line, append(whole, '\n')) {
			t.Fatalf("%q became %q, %v", data, line, err)
		}
		again[Request](t, line)
		again[Reply](t, line)
	})
}

func again[T any](t *testing.T, line []byte) {
	t.Helper()
	var first, second T
	if json.Unmarshal(line, &first) != nil {
		return
	}
	data, err := json.Marshal(first)
	if err != nil {
		t.Fatalf("%+v cannot be written: %v", first, err)
	}
	if err := json.Unmarshal(data, &second); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	more, err := json.Marshal(second)
	if err != nil || !bytes.Equal(more, data) {
		t.Errorf("%s became %s, %v (%s)", data, more, err, reflect.TypeFor[T]())
	}
}
