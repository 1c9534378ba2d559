package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
)

func event(kind string, seq int, more string) string {
	return fmt.Sprintf(`{"type":%q,"run_id":"R","seq":%d,"time":"2026-01-02T03:04:05Z","agent":"a"%s}`+"\n", kind, seq, more)
}

// Looks that go on where the last one ended see the same as one from the beginning.
func TestLooks(t *testing.T) {
	st := store.New(t.TempDir())
	dir, err := st.Create("01M7X9DSQ827BHWDSGN2DGXP98")
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteMeta(store.Meta{Version: 1, RunID: dir.ID, Spec: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	defer dir.Unlock() // somebody hosts it
	var looks Looks
	var log []byte
	seq := 0
	add := func(kind, more string) { seq++; log = append(log, event(kind, seq, more)...) }
	check := func(step string) {
		t.Helper()
		var got []Info
		if err := looks.Inspect(t.Context(), st, []string{dir.ID}, func(_ *store.Run, info Info) { got = append(got, info) }); err != nil {
			t.Fatal(err)
		}
		want, err := Read(dir)
		if err != nil || len(got) != 1 || got[0].State != want.State || got[0].Events != want.Events || got[0].Reason != want.Reason || (got[0].End == nil) != (want.End == nil) {
			t.Errorf("%s: %+v, want %+v, %v", step, got, want, err)
		}
	}
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(dir.Path("events.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("no events")
	add("run_state", `,"from":"starting","to":"running"`)
	for range 20_000 { // several chunks
		add("text_delta", `,"delta":"`+strings.Repeat("x", 50)+`"`)
	}
	write(log)
	check("many")
	write(append(log[:len(log):len(log)], `{"type":"run_state","run_id":"R"`...))
	check("a line without its end")
	for step, state := range []string{engine.Waiting, engine.Paused, engine.Running} {
		add("run_state", `,"from":"x","to":"`+state+`"`)
		for range step * 100 {
			add("text_delta", `,"delta":"y"`)
		}
		write(log)
		check(state)
	}
	write(log[:len(log)/2])
	check("cut")
	add("run_end", `,"state":"completed"`)
	write(log)
	check("ended")
}

// The quick way of reading an event is that of JSON, for whatever a file may hold.
func FuzzParse(f *testing.F) {
	const head = `{"type":"text_delta","run_id":"01M88EQX0N2TBQ3JMMDHCPP0AK","seq":18,"time":"2026-11-25T04:17:08.635279Z","agent":"claude"`
	for _, line := range []string{
		head + `,"delta":"a\nb"}`, head + `,"a":"\u00e9","b":12,"c":null,"d":true}`, head + `,"a":01}`, head + `,"a":tru}`, head + `,"a":"\x"}`, head + `,"a":1,}`, head + `}`, head, head + `,"delta":"a`, head + `,"delta":1}{`,
		strings.Replace(head, "18", "018", 1) + `}`, strings.Replace(head, "18", "18446744073709551616", 1) + `}`,
		strings.Replace(head, "18", "-1", 1) + `}`, strings.Replace(head, "18", "1e3", 1) + `}`, strings.Replace(head, "Z", "+01:00", 1) + `}`,
		strings.Replace(head, "claude", `cla\u0075de`, 1) + `}`, strings.Replace(head, "claude", "é\xff", 1) + `}`,
		strings.Replace(head, "2026-11", "2026-13", 1) + `}`, strings.Replace(head, `"claude"`, "null", 1) + `}`, "", "{}", "null",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		_, rest, ok := Head{}.parseWritten(line)
		if ok && flat(rest) && !json.Valid(line) {
			t.Fatalf("%q is no JSON, and looks like it", line)
		}
		var want Head
		err := json.Unmarshal(line, &want)
		got, failed := Parse(line)
		if (err == nil) != (failed == nil) {
			t.Fatalf("%q: %v, and by JSON %v", line, failed, err)
		}
		for _, before := range []Head{got, {Type: "text_delta", RunID: "01M88EQX0N2TBQ3JMMDHCPP0AK", Seq: 17, Agent: "claude"}} {
			if behind, err := before.Next(line); (err == nil) != (failed == nil) || behind != got {
				t.Fatalf("%q: %v, and behind %v it is %v", line, got, before, behind)
			}
		}
		if ok && err == nil && !repeats(line) && (got.Type != want.Type || got.RunID != want.RunID || got.Seq != want.Seq || got.Agent != want.Agent || !got.Time.Equal(want.Time)) {
			t.Fatalf("%q: %v, and by JSON %v", line, got, want)
		}
	})
}

// repeats reports whether a line has further keys that JSON would take for those of the
// head. Package eventlog writes none.
func repeats(line []byte) bool {
	_, rest, _ := bytes.Cut(line, []byte(`,"agent":"`))
	rest = bytes.ToLower(rest)
	for _, key := range []string{"type", "run_id", "seq", "time", "agent", `\u`} {
		if bytes.Contains(rest, []byte(key)) {
			return true
		}
	}
	return bytes.ContainsFunc(rest, func(r rune) bool { return r >= 0x80 })
}

// A run whose end the disk was too full for has failed, also while somebody tries to record
// the end and holds the record.
func TestCutOffIsToldWhileSomebodyTries(t *testing.T) {
	st := store.New(t.TempDir())
	dir, err := st.Create("01M7X9DSQ827BHWDSGN2DGXP98")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dir.WriteMeta(store.Meta{Version: 1, RunID: dir.ID, Spec: []byte("{}")}), dir.MarkActive(),
		os.WriteFile(dir.Path("events.jsonl"), []byte(event("run_state", 1, `,"from":"starting","to":"running"`)), 0o600)); err != nil {
		t.Fatal(err)
	}
	check := func(step, want string) {
		t.Helper()
		info, err := Inspect(dir)
		if err != nil || info.State != want {
			t.Errorf("%s: %s, %v", step, info.State, err)
		}
		var looks Looks
		if err := looks.Inspect(t.Context(), st, []string{dir.ID}, func(_ *store.Run, found Info) {
			if found.State != want || found.Code != info.Code || found.Reason != info.Reason {
				t.Errorf("%s: a list says %+v", step, found)
			}
		}); err != nil {
			t.Error(err)
		}
	}
	check("hosted", engine.Running)
	AmendExit(dir.Path("exit"), journal.ReasonAbandoned)
	check("abandoned, and its host has not left", engine.Running)
	AmendExit(dir.Path("exit"), journal.ReasonDiskFull)
	check("cut off, while somebody tries", engine.Failed)
	dir.Unlock()
	check("cut off", engine.Failed)
	if err := os.Remove(dir.Path("exit")); err != nil {
		t.Fatal(err)
	}
	check("nobody knows", engine.Lost)
}
