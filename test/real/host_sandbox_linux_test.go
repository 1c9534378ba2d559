package real

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

// Every agent works in a sandbox in which it reaches its model alone: it answers, its tools
// write in the work folder and nowhere else, and its session is there afterwards, for a
// second run in a sandbox.
func TestSandbox(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("it needs bubblewrap")
	}
	for _, a := range agents {
		if !selected(a, "host: a sandbox") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			report.keep(t, a.id, "sandbox")
			newRun(t, a).inSandbox()
		})
	}
}

func (r *run) inSandbox() {
	r.t.Helper()
	model, err := url.Parse(r.model.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	box := []string{"--sandbox", "--sandbox-net", "localhost:" + model.Port(), "--approve", "auto"}
	if r.agent.id == "amux-remote" {
		out, err := r.amux(context.Background(), append([]string{"run", r.agent.id, "x"}, box...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "works on another machine") {
			r.t.Errorf("an agent elsewhere: %v %s", err, out)
		}
		return
	}
	if r.agent.id == "hermes" { // a test's launcher names the Python of its environment, which is elsewhere
		python, err := filepath.EvalSymlinks(filepath.Join(tc.Root, ".cache", "agents.d", "hermes", "venv", "bin", "python"))
		if err != nil {
			r.t.Fatal(err)
		}
		box = append(box, "--sandbox-read", filepath.Dir(filepath.Dir(python)))
	}
	made, escaped := r.path("made"), filepath.Join(r.dir, "home", "escaped")
	r.once("[fm:touch="+made+"]", box...)
	r.ok(1)
	if r.finalText() != fakemodel.DoneText {
		r.t.Errorf("it has said %q", r.finalText())
	}
	if _, err := os.Stat(made); err != nil {
		r.t.Errorf("its tool could not write in the work folder: %v", err)
	}
	next := r.again()
	args := box
	if _, cannot := r.agent.na["resume"]; !cannot {
		args = append([]string{"--resume", r.end().SessionID}, box...)
	}
	next.once("[fm:touch="+escaped+"]", args...)
	if _, err := os.Stat(escaped); err == nil {
		r.t.Error("its tool has written outside of the sandbox")
	}
	if len(args) > len(box) && !next.asked(-1).contains("[fm:touch="+made) {
		r.t.Error("the session did not go on")
	}
}
