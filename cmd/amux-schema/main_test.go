package main

import (
	"strings"
	"testing"
)

func TestRespond(t *testing.T) {
	for _, test := range []struct{ request, want string }{
		{`{"schema":"{}"}`, "{}\n"},
		{`{"schema":"{}","answer":"1"}`, "{}\n"},
		{`{"schema":"{}","answer":""}`, `{"error":"the agent gave no answer, but --json-schema requires one"}` + "\n"},
		{`{"schema":"{"}`, `{"error":"it is not JSON: line 1: unexpected end of JSON input"}` + "\n"},
		{`{"schema":"` + strings.Repeat(`\u0020`, maxSchema) + `{}"}`, `{"error":"it is larger than 256 KiB"}` + "\n"},
	} {
		var out strings.Builder
		if err := respond(strings.NewReader(test.request), &out); err != nil || out.String() != test.want {
			t.Errorf("%.100s: %v, %q", test.request, err, out.String())
		}
	}
	if err := respond(strings.NewReader(`{"schema":`), &strings.Builder{}); err == nil {
		t.Error("half a request was answered")
	}
}
