package real

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

// editorTime bounds the two editors of one agent.
const editorTime = 4 * time.Minute

// An editor drives every agent by the Agent Client Protocol, as it is with the official
// SDK: it prompts, is asked, chooses another model, is killed; another one loads the
// session, cancels a turn, and ends it.
func TestEditor(t *testing.T) {
	for _, a := range agents {
		if !selected(a, "host: an editor") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			report.keep(t, a.id, "editor")
			r := newRun(t, a)
			options := a.always
			if a.na["two turns"] == openclawGateway {
				r.gateway()
				options = append([]string{"--driver", "acp"}, options...)
			}
			r.drivenByEditor(options)
		})
	}
}

func (r *run) drivenByEditor(options []string) {
	r.t.Helper()
	asks := !slices.Contains(r.agent.always, "--approve")
	file := r.path("made")
	prompts := map[string]string{"text": "[fm:text]", "asks": "[fm:" + r.agent.asksAbout + "=" + file + "]", "hangs": "[fm:hang]"}
	if _, cannot := r.agent.na["interrupt a stream"]; cannot {
		delete(prompts, "hangs")
	}
	data, err := json.Marshal(prompts)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), editorTime)
	defer cancel()
	cmd := r.amux(ctx, "serve", "--idle", "0s")
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			r.t.Errorf("stop the server: %v", err)
		}
		_ = cmd.Wait()
	}()
	node := exec.CommandContext(ctx, "node", append([]string{filepath.Join(editorDir(tc.Root), "agents.mjs"), cmd.Path, r.cwd, string(data), "--agent", r.agent.id}, options...)...)
	node.Dir, node.Env, node.Stderr = cmd.Dir, cmd.Env, &r.stderr
	node.WaitDelay = 3 * time.Second
	out, err := node.Output()
	if err != nil {
		r.t.Fatalf("%v: %s\n%s", err, out, r.stderr.String())
	}
	var seen struct {
		Version int
		Session string
		Asked   []struct {
			Kinds       []string
			Title, Kind string
		}
		Reasons, Errors map[string]string
		Text, User      string
		Open            []string
		Tools           int
		Same            bool
		Listed          []string
		Modes           []string
		Mode            string
		Options         []string
		Model           *bool
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	// The session was closed, and its agent may take a while to end.
	_ = r.amux(ctx, "wait", seen.Session).Run()
	r.events = []event{{RunID: seen.Session}}
	r.checkLeftovers()
	want := map[string]string{"text": "end_turn", "tool": "end_turn"}
	if prompts["hangs"] != "" {
		want["cancelled"], want["after"] = "cancelled", "end_turn"
	}
	for name, reason := range want {
		if seen.Reasons[name] != reason {
			r.t.Errorf("turn %s ends with %q, %s; want %s", name, seen.Reasons[name], seen.Errors[name], reason)
		}
	}
	if !strings.HasPrefix(seen.Text, fakemodel.HelloText) || !strings.HasSuffix(strings.TrimSpace(seen.Text), fakemodel.DoneText) {
		r.t.Errorf("it has said %q", seen.Text)
	}
	if !seen.Same || seen.User != prompts["text"]+prompts["asks"] || !slices.Contains(seen.Listed, seen.Session) {
		r.t.Errorf("loaded again it is the same: %v; the user has said %q; listed are %q", seen.Same, seen.User, seen.Listed)
	}
	if seen.Tools == 0 || len(seen.Open) > 0 {
		r.t.Errorf("%d tools, of which %q have no end", seen.Tools, seen.Open)
	}
	if asks && (len(seen.Asked) != 1 || seen.Asked[0].Kinds[0] != "allow_once" || seen.Asked[0].Title == "" || !slices.Equal(seen.Modes, []string{"ask", "auto", "deny"}) || seen.Mode != "auto") ||
		!asks && (len(seen.Asked) > 0 || seen.Modes != nil) {
		r.t.Errorf("it asks %v: it was asked %+v; modes %q", asks, seen.Asked, seen.Modes)
	}
	if seen.Model != nil && !*seen.Model {
		r.t.Error("another model was chosen, and the option says otherwise")
	}
	r.t.Logf("options %q, asked %+v", seen.Options, seen.Asked)
}
