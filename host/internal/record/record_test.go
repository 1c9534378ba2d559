package record

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host/internal/engine"
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
