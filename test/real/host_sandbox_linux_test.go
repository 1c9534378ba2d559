package real

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

// unlessSandboxed skips a test where bubblewrap makes no sandbox.
func unlessSandboxed(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true").CombinedOutput(); err != nil {
		t.Skipf("bubblewrap makes no sandbox here: %v %s", err, out)
	}
}

// Every agent works in a sandbox in which it reaches its model alone: it answers, its tools
// write in the work folder and nowhere else, and its session is there afterwards, for a
// second run in a sandbox.
func TestSandbox(t *testing.T) {
	unlessSandboxed(t)
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

// seeingAgents lets a sandbox see the agents of the tests, wherever the checkout is: their
// launchers are scripts that start what is beside them, and the Python of Hermes.
func (r *run) seeingAgents() []string {
	r.t.Helper()
	args := []string{"--sandbox", "--sandbox-read", filepath.Join(tc.Root, ".cache")}
	if python, err := filepath.EvalSymlinks(filepath.Join(tc.Root, ".cache", "agents.d", "hermes", "venv", "bin", "python")); err == nil && r.agent.id == "hermes" {
		args = append(args, "--sandbox-read", filepath.Dir(filepath.Dir(python)))
	}
	return args
}

func (r *run) inSandbox() {
	r.t.Helper()
	model, err := url.Parse(r.model.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	box := append(r.seeingAgents(), "--sandbox-net", "localhost:"+model.Port(), "--approve", "auto")
	if r.agent.id == "amux-remote" {
		out, err := r.amux(context.Background(), append([]string{"run", r.agent.id, "x"}, box...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "works on another machine") {
			r.t.Errorf("an agent elsewhere: %v %s", err, out)
		}
		return
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

// The key of the model's provider stays outside: inside there is a placeholder, and nothing
// that the run leaves has the key.
func TestSandboxSecret(t *testing.T) {
	unlessSandboxed(t)
	for id, variable := range map[string]string{"claude": "ANTHROPIC_API_KEY", "qwen": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "copilot": "COPILOT_PROVIDER_API_KEY"} {
		a := agents[slices.IndexFunc(agents, func(a agentRow) bool { return a.id == id })]
		if !selected(a, "host: a secret") {
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			report.keep(t, id, "secret")
			r := newRun(t, a)
			const key = "sk-ant-api03-0123456789-of-the-provider"
			// The provider, which notes what it is shown.
			var mu sync.Mutex
			shown := map[string]int{}
			target, err := url.Parse(r.model.URL)
			if err != nil {
				t.Fatal(err)
			}
			front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(target)
				mu.Lock()
				defer mu.Unlock()
				shown[fmt.Sprint(strings.Contains(fmt.Sprint(p.In.Header, p.In.URL), key), " ", strings.Contains(fmt.Sprint(p.In.Header, p.In.URL), "placeholder"))]++
			}, FlushInterval: -1})
			t.Cleanup(front.Close)
			r.provider = front.URL
			copied := r.path("environment")
			r.env = append(r.env, variable+"="+key)
			r.once("[fm:touch=made; env > "+copied+"]", append(r.seeingAgents(), "--sandbox-secret", variable+"=localhost:"+front.URL[strings.LastIndex(front.URL, ":")+1:], "--approve", "auto")...)
			r.ok(1)
			mu.Lock()
			if shown["true false"] == 0 || shown["false true"] > 0 || shown["true true"] > 0 {
				t.Errorf("the provider is shown (the key, a placeholder): %v", shown)
			}
			mu.Unlock()
			if inside, err := os.ReadFile(copied); err != nil || strings.Contains(string(inside), variable+"=") && !strings.Contains(string(inside), variable+"=sk-ant-api03-placeholder") {
				t.Errorf("the agent's tools see %s, %v", inside, err)
			}
			err = filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(path)
				if bytes.Contains(data, []byte(key)) {
					t.Errorf("%s has the key", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
