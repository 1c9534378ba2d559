package ndjson

import (
	"io"
	"strings"
	"testing"
)

// However the lines are cut into pieces, the last whole one counts.
func TestLastLine(t *testing.T) {
	t.Parallel()
	const end, other = `{"type":"run_end","run_id":"R"}` + "\n", `{"type":"text_delta","delta":"{\"type\":\"run_end\","}` + "\n"
	for text, ended := range map[string]bool{
		"": false, end: true, other + end: true, end + other: false, other: false, strings.TrimSuffix(end, "\n"): false, end + end: true,
	} {
		for size := 1; size <= len(text)+1; size++ {
			var out strings.Builder
			e := &LastLine{W: &out}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := io.WriteString(e, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if out.String() != text || e.Ended() != ended {
				t.Errorf("%q in pieces of %d: ended %v", text, size, e.Ended())
			}
		}
	}
}
