package real

import (
	"strings"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/pluginapi"
)

// cutOff is what the fake model has said when it resets the connection.
var cutOff = fakemodel.DeltaText(0) + fakemodel.DeltaText(1) + fakemodel.DeltaText(2)

// answer checks that stdout is byte for byte what the agent's final messages were, with a
// connection that breaks within each of them, and a tool between.
func answer(r *run) {
	r.plain = true
	script := "[fm:reset=1] hello"
	want, fails := "I will run a command.\n\n"+fakemodel.DoneText+"\n", false
	switch {
	case r.lacking("another request"):
		want, fails = "", true
	case r.lacking("that an answer is taken back"):
		script = "[fm:text-then-bash] hello"
	case r.lacking("an answer started over"):
		want = cutOff + fakemodel.HelloText + "\n"
		if r.lacking("blanks at the end of what was cut off") {
			want = strings.TrimRight(cutOff, " ") + "\n" + fakemodel.HelloText + "\n"
		}
	case r.lacking("messages before the last"):
		want = fakemodel.DoneText + "\n"
	}
	r.once(script, "--approve", "auto")
	if r.text != want || (r.exit != 0) != fails {
		r.t.Errorf("exit %d, stdout %q; want %q, failed %v", r.exit, r.text, want, fails)
	}
}

// answered checks that the record of a run is shown with the main conversation's messages
// on stdout and nothing else.
func (r *run) answered() {
	r.t.Helper()
	var texts []string
	for _, m := range all[pluginapi.MessageStop](r) {
		if m.ParentID == "" && !m.Aborted {
			texts = append(texts, strings.TrimSuffix(m.Text, "\n")+"\n")
		}
	}
	out, err := r.amux(r.t.Context(), "logs", r.events[0].RunID).Output()
	if want := strings.Join(texts, "\n"); err != nil || string(out) != want || !strings.Contains(want, fakemodel.DoneText+"\n") {
		r.t.Errorf("amux logs: %v, stdout %q, want %q", err, out, want)
	}
}
