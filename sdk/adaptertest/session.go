package adaptertest

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// Session reads a stored session and holds its events, a line each with their time in
// UTC, against a file; -update writes the file.
func Session(t *testing.T, reader sdk.SessionReader, q *pluginapi.SessionQuery, file string) {
	t.Helper()
	var b bytes.Buffer
	err := reader.ReadSession(t.Context(), q, func(p pluginapi.Payload, at time.Time) bool {
		data, err := pluginapi.AppendPayload(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %s\n", at.UTC().Format("15:04:05.000"), p.EventType(), data)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s differs; go test -update rewrites it (-want +got):\n%s", file, diff)
	}
}
