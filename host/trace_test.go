package host

import (
	"strings"
	"testing"
)

const (
	tracedRun    = "01KAR0000000000000000TRACE"
	callerParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// A run stands below its caller; whatever else the caller has said is no caller.
func TestTraceIDs(t *testing.T) {
	t.Parallel()
	alone := Trace{}.IDs(tracedRun)
	if alone.Parent != [8]byte{} || !alone.Sampled || alone.Trace == [16]byte{} || alone.Span == [8]byte{} {
		t.Errorf("without a caller: %+v", alone)
	}
	if other := (Trace{}).IDs(tracedRun[:25] + "F"); other.Trace == alone.Trace || other.Span == alone.Span {
		t.Error("two runs have one id")
	}
	for _, test := range []struct {
		parent  string
		taken   bool
		sampled bool
	}{
		{callerParent, true, true},
		{callerParent[:53] + "00", true, false},
		{callerParent[:53] + "03", true, true},
		{"cc" + callerParent[2:] + "-what-comes-later", true, true},
		{"cc" + callerParent[2:], true, true},
		{"", false, true},
		{callerParent + "-x", false, true},
		{callerParent + "0", false, true},
		{"cc" + callerParent[2:] + "x", false, true},
		{"ff" + callerParent[2:], false, true},
		{strings.ToUpper(callerParent), false, true},
		{callerParent[:54], false, true},
		{"00-" + strings.Repeat("0", 32) + callerParent[35:], false, true},
		{callerParent[:36] + strings.Repeat("0", 16) + callerParent[52:], false, true},
		{callerParent[:3] + "g" + callerParent[4:], false, true},
		{"0-00af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, true},
		{strings.Repeat("-", 55), false, true},
	} {
		ids := Trace{Parent: test.parent}.IDs(tracedRun)
		if taken := ids.Parent != [8]byte{}; taken != test.taken || ids.Sampled != test.sampled {
			t.Errorf("%q: %+v", test.parent, ids)
		}
		want := alone.Trace
		if test.taken {
			want = [16]byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c}
		}
		if ids.Trace != want || ids.Span != alone.Span {
			t.Errorf("%q: %+v", test.parent, ids)
		}
		if again, ok := parseTraceParent(ids.TraceParent()); !ok || again.Trace != ids.Trace || again.Span != ids.Span || again.Sampled != ids.Sampled {
			t.Errorf("%q: the run's own %s is not read again", test.parent, ids.TraceParent())
		}
	}
}

func FuzzTraceParent(f *testing.F) {
	f.Add(callerParent)
	f.Add("cc" + callerParent[2:] + "-x")
	f.Fuzz(func(t *testing.T, text string) {
		ids, ok := parseTraceParent(text)
		if ok && (ids.Trace == [16]byte{} || ids.Span == [8]byte{} || text[3:52] != ids.TraceParent()[3:52]) {
			t.Errorf("%q is %+v", text, ids)
		}
	})
}
