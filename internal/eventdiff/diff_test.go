package eventdiff

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// line is an event of the run; at is its moment.
func line(seq int, kind string, at int, rest string) string {
	return fmt.Sprintf(`{"type":%q,"run_id":"R","seq":%d,"time":"2026-01-01T00:00:00.%06dZ","agent":"fake"%s}`+"\n", kind, seq, at, rest)
}

func TestWrite(t *testing.T) {
	const head = "--- a\n+++ b\n"
	text := func(seq, at int, text string) string {
		return line(seq, "text_delta", at, fmt.Sprintf(`,"delta":%q`, text))
	}
	long := strings.Repeat("x", 1000)
	many := ""
	for i := range 1200 {
		many += text(i+1, 5, fmt.Sprint(i))
	}
	for _, test := range []struct {
		name, was, is, want string
	}{
		{"nothing", "", "", ""},
		{"equal", text(1, 1, "a") + text(2, 1, "b"), text(1, 1, "a") + text(2, 1, "b"), ""},
		{"of another run", text(1, 1, "a"), strings.ReplaceAll(text(1, 1, "a"), `"R"`, `"S"`), ""},
		{"order of fields", line(1, "log", 1, `,"a":1,"b":2`), line(1, "log", 1, `,"b":2,"a":1`), ""},
		{"changed", text(1, 1, "a") + text(2, 2, "b"), text(1, 1, "A") + text(2, 2, "b"),
			"@@ -1 +1 text_delta @@\n-delta: \"a\"\n+delta: \"A\"\n"},
		{"a field more", text(1, 1, "a"), line(1, "text_delta", 1, `,"delta":"a","parent_id":"p"`),
			"@@ -1 +1 text_delta @@\n+parent_id: \"p\"\n"},
		{"a field less", line(1, "text_delta", 1, `,"delta":"a","parent_id":"p"`), text(1, 1, "a"),
			"@@ -1 +1 text_delta @@\n-parent_id: \"p\"\n"},
		{"one more in a moment", text(1, 1, "a") + text(2, 1, "b"), line(1, "log", 1, "") + text(2, 1, "a") + text(3, 1, "b"),
			"@@ +1 log @@\n+time: \"2026-01-01T00:00:00.000001Z\"\n"},
		{"one less of its kind", text(1, 1, "a") + text(2, 1, "b") + text(3, 1, "c"), text(1, 1, "a") + text(2, 1, "c"),
			"@@ -2 text_delta @@\n-delta: \"b\"\n-time: \"2026-01-01T00:00:00.000001Z\"\n"},
		{"a moment more", text(1, 1, "a") + text(2, 3, "b"), text(1, 1, "a") + line(2, "log", 2, "") + text(3, 3, "b"),
			"@@ +2 log @@\n+time: \"2026-01-01T00:00:00.000002Z\"\n"},
		{"the end is missing", text(1, 1, "a") + line(2, "run_end", 2, ""), text(1, 1, "a"),
			"@@ -2 run_end @@\n-time: \"2026-01-01T00:00:00.000002Z\"\n"},
		{"of another type", line(1, "log", 1, ""), line(1, "debug", 1, ""),
			"@@ -1 log @@\n-time: \"2026-01-01T00:00:00.000001Z\"\n@@ +1 debug @@\n+time: \"2026-01-01T00:00:00.000001Z\"\n"},
		{"far in a long text", text(1, 1, long+"a"+long), text(1, 1, long+"b"+long),
			"@@ -1 +1 text_delta @@\n" +
				"-delta: …" + long[:40] + "a" + long[:159] + "… (2003 bytes)\n" +
				"+delta: …" + long[:40] + "b" + long[:159] + "… (2003 bytes)\n"},
		{"more than is compared", many, strings.Replace(strings.Replace(many, `"0"`, `"zero"`, 1), `"1199"`, `"last"`, 1),
			"@@ -1 +1 text_delta @@\n-delta: \"0\"\n+delta: \"zero\"\n@@ -1200 +1200 text_delta @@\n-delta: \"1199\"\n+delta: \"last\"\n"},
		{"control sequences", text(1, 1, "a"), line(1, "text_delta", 1, ",\"delta\":\"\u009b31m\u202e\""),
			"@@ -1 +1 text_delta @@\n-delta: \"a\"\n+delta: \"\"\n"},
		{"no event", "{torn\n" + text(1, 1, "a"), text(1, 1, "a"), "@@ -? (no event) @@\n-line: {torn\n"},
	} {
		for _, slow := range []bool{false, true} {
			var was, is io.Reader = strings.NewReader(test.was), strings.NewReader(test.is)
			if slow {
				was, is = iotest.HalfReader(was), iotest.DataErrReader(is)
			}
			var out strings.Builder
			differ, err := Write(&out, was, is, func() string { return head })
			want := test.want
			if want != "" {
				want = head + want
			}
			if err != nil || differ != (want != "") || out.String() != want {
				t.Errorf("%s: %v %v\n%s\nwant\n%s", test.name, differ, err, &out, want)
			}
		}
	}
}

// What cannot be read or written is no difference.
func TestWriteFails(t *testing.T) {
	broken := errors.New("broken")
	events := line(1, "log", 1, "") + line(2, "log", 1, "")
	for _, at := range []int{0, 10, len(events) / 2, len(events) - 1, len(events)} {
		torn := io.MultiReader(strings.NewReader(events[:at]), iotest.ErrReader(broken))
		for _, sides := range [][2]io.Reader{{torn, strings.NewReader(events)}} {
			var out strings.Builder
			differ, err := Write(&out, sides[0], sides[1], func() string { return "" })
			if differ || !errors.Is(err, broken) || out.Len() > 0 {
				t.Errorf("at %d: %v %v %s", at, differ, err, &out)
			}
		}
	}
	r, w := io.Pipe()
	r.Close()
	if _, err := Write(w, strings.NewReader(events), strings.NewReader(""), func() string { return "" }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
