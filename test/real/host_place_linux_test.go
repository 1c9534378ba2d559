package real

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

// Every agent works at another place: here is neither its program nor its home. It answers, its
// tools write there, it asks before it acts and the answer reaches it, and its session goes on.
func TestPlace(t *testing.T) {
	for _, a := range agents {
		if !selected(a, "host: a place") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			report.keep(t, a.id, "place")
			newRun(t, a).atPlace()
		})
	}
}

// elsewhere makes the home, the programs and the variables that the agent has those of another
// place, which a helper program reaches. Here nothing of them is left.
func (r *run) elsewhere() []string {
	r.t.Helper()
	quoted := []string{"exec", "env", "-i"}
	for _, v := range r.amux(context.Background()).Env {
		if !strings.HasPrefix(v, "AGENT_MUX_") {
			quoted = append(quoted, "'"+strings.ReplaceAll(v, "'", `'\''`)+"'")
		}
	}
	helper := filepath.Join(r.dir, "helper")
	writeFile(r.t, helper, "#!/bin/sh\n[ \"$1\" = exec ] || exit 0\nshift 3\n"+strings.Join(quoted, " ")+` "$@"`+"\n")
	if err := os.Chmod(helper, 0o700); err != nil {
		r.t.Fatal(err)
	}
	writeFile(r.t, filepath.Join(r.dir, "config", "config.toml"), fmt.Sprintf("[places.there]\nprogram = %q\nfolder = %q\n", helper, r.cwd))
	here := filepath.Join(r.dir, "here")
	if err := os.MkdirAll(here, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "HOME="+here, "PATH=/usr/bin:/bin")
	return []string{"--on", "there"}
}

func (r *run) atPlace() {
	r.t.Helper()
	on := r.elsewhere()
	made := r.path("made")
	args := append(slices.Clone(on), "--approve", "auto")
	r.once("[fm:touch="+made+"]", args...)
	r.ok(1)
	if r.finalText() != fakemodel.DoneText {
		r.t.Errorf("it has said %q", r.finalText())
	}
	if _, err := os.Stat(made); err != nil {
		r.t.Errorf("its tool has not written there: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(r.dir, "here")); len(entries) > 0 {
		r.t.Errorf("it has written into the home here: %v", entries)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "home", ".local", "state", "amux", "far", "*")); len(left) > 0 {
		r.t.Errorf("left there: %v", left)
	}
	if _, cannot := r.agent.na["resume"]; !cannot {
		next := r.again()
		next.once("second", append([]string{"--resume", r.end().SessionID}, args...)...)
		if !next.asked(-1).contains("[fm:touch=" + made) {
			r.t.Error("the session did not go on")
		}
	}
	if r.agent.id == "codex" || r.agent.id == "claude" { // of this machine, and read there
		file := filepath.Join(r.dir, "here", "notes.txt")
		if err := os.WriteFile(file, []byte("remember the milk"), 0o600); err != nil {
			r.t.Fatal(err)
		}
		with := r.again()
		with.once("[fm:text] read", append([]string{"--file", file}, args...)...)
		with.ok(1)
		if !with.asked(-1).contains("remember the milk") {
			r.t.Errorf("the model was asked %q", with.asked(-1).Texts)
		}
	}
	if _, cannot := r.agent.na["approval granted"]; !cannot {
		asks := r.again()
		second := r.path("second")
		asks.converse(append(slices.Clone(on), "--approve", "ask")...)
		asks.prompt("[fm:" + asks.agent.asksAbout + "=" + second + "]")
		question := asks.until("approval_request")
		asks.send(map[string]any{"type": "approve", "interaction_id": question.InteractionID})
		asks.until("turn_end")
		asks.stdin.Close()
		asks.wait()
		if _, err := os.Stat(second); err != nil {
			r.t.Errorf("what was approved was not done: %v", err)
		}
	}
}
