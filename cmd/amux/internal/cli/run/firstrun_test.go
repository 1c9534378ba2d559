package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// What a plugin starts that did not come with amux is said, and the first time asked.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	acme := host.AgentInfo{
		Description: &pluginapi.Agent{Id: "acme"}, Plugin: "acme", PluginVersion: "1.2.0", Trust: "signed by acme (RW…)", Identity: "RWkey",
	}
	planned := host.Planned{Agent: "acme", Plugin: "acme", Program: "/opt/acme/bin/acme"}
	for _, test := range []struct {
		name     string
		terminal bool
		spoil    func(a *host.AgentInfo, o *Options)
		typed    string
		refused  bool
		asks     bool
		line     bool
		known    bool // afterwards
	}{
		{name: "no terminal", line: true},
		{name: "accepted", terminal: true, typed: "y\n", asks: true, line: true, known: true},
		{name: "refused", terminal: true, typed: "\n", asks: true, line: true, refused: true},
		{name: "bundled", terminal: true, spoil: func(a *host.AgentInfo, _ *Options) { a.Bundled = true }},
		{name: "under development", terminal: true, line: true, spoil: func(a *host.AgentInfo, _ *Options) { a.Identity = "" }},
		{name: "for a program", terminal: true, line: true, spoil: func(_ *host.AgentInfo, o *Options) { o.JSON = true }},
		{name: "quiet", spoil: func(_ *host.AgentInfo, o *Options) { o.Quiet = true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			dir := t.TempDir()
			p := &app.Process{Env: []string{"AMUX_PLUGIN_DIR=" + dir}, Home: dir, Executable: filepath.Join(dir, "amux"), IO: &iostreams.IO{}}
			p.IO.Err, p.IO.In = &said, strings.NewReader(test.typed)
			p.IO.InTTY, p.IO.ErrTTY = test.terminal, test.terminal
			a, o := acme, NewOptions(app.New(p))
			if test.spoil != nil {
				test.spoil(&a, o)
			}
			var err error
			r := &request{Options: o, agent: a}
			if hook := r.onPlan(); hook != nil {
				err = hook(t.Context(), planned)
			}
			if refused := errors.Is(err, pluginapi.CodePluginUntrusted); refused != test.refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
			if got := strings.Contains(said.String(), "[y/N]"); got != test.asks {
				t.Errorf("asks: %v in %q", got, said.String())
			}
			if got := strings.Contains(said.String(), "agent acme runs /opt/acme/bin/acme (plugin acme 1.2.0, signed by acme (RW…))"); got != test.line {
				t.Errorf("says which program: %v in %q", got, said.String())
			}
			_, statErr := os.Stat(filepath.Join(dir, "known.json"))
			if (statErr == nil) != test.known {
				t.Errorf("remembered: %v", statErr)
			}
			if !test.known {
				return
			}
			said.Reset()
			if err := r.onPlan()(t.Context(), planned); err != nil || strings.Contains(said.String(), "[y/N]") {
				t.Errorf("asked again: %v, %q", err, said.String())
			}
			r.agent.Identity = "another key"
			p.IO.In = strings.NewReader("n\n")
			if err := r.onPlan()(t.Context(), planned); err == nil {
				t.Error("another signer was not asked about")
			}
		})
	}
}
