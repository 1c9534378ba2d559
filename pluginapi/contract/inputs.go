package contract

import (
	"bytes"
	"fmt"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Line is a line as the host sends it: in pieces if it is long.
func Line(kind pb.InputKind, line []byte) []*pb.Input {
	var inputs []*pb.Input
	for len(line) > pluginapi.PieceSize {
		inputs = append(inputs, &pb.Input{Kind: kind, Data: line[:pluginapi.PieceSize], More: true})
		line = line[pluginapi.PieceSize:]
	}
	return append(inputs, &pb.Input{Kind: kind, Data: line})
}

// Junk is a line that no agent means.
type Junk struct {
	Name string
	Line []byte
	// Text: it is no JSON at all, so it must be logged whole.
	Text bool
}

// JunkLines returns one of each kind; long is how many bytes the long ones have,
// and 0 leaves them out.
func JunkLines(long int) []Junk {
	lines := []Junk{
		{"garbage", []byte("npm warn deprecated inflight@1.0.6: not \x00 JSON \x1b[31m"), true},
		{"torn UTF-8", []byte("caf\xc3 \xff\xfe na\xefve"), true},
		{"torn object", []byte(`{"type":"assistant","message":{"content":[{"te`), true},
		{"torn string", []byte("{\"type\":\"\xe2\x82"), true},
		{"two objects", []byte(`{"type":"a"}{"type":"b"}`), true},
		{"too deep", bytes.Repeat([]byte("["), 100_000), true},
		{"empty object", []byte(`{}`), false},
		{"empty array", []byte(`[]`), false},
		{"null", []byte(`null`), false},
		{"a string", []byte(`"amux grease"`), false},
		{"a number", []byte(`-0`), false},
		{"unknown type", []byte(`{"type":"amux_grease","amux_grease":{"x":[1,null]}}`), false},
		{"type is a number", []byte(`{"type":7,"event":7,"method":7,"id":[],"message":7}`), false},
		{"type is null", []byte(`{"type":null,"event":null,"method":null,"params":null}`), false},
	}
	if long > 0 {
		lines = append(lines,
			Junk{"long text", bytes.Repeat([]byte("é"), long/2), true},
			Junk{"long object", fmt.Appendf(nil, `{"type":"amux_grease","pad":"%s"}`, bytes.Repeat([]byte("x"), long)), false})
	}
	return lines
}
