package cli

import (
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// amux alone says what can be used and the next command to type, also with settings that
// cannot be read.
func TestWelcome(t *testing.T) {
	t.Parallel()
	agents := func(installed, signed bool) []host.AgentInfo {
		return []host.AgentInfo{
			{Description: &pluginapi.Agent{Id: "codex", AuthGuidance: []string{"run codex login"}}, Installed: installed, SignedIn: signed, Version: "1.2.3", PlatformOK: true},
			{Description: &pluginapi.Agent{Id: "claude"}, PlatformOK: true},
			{Description: &pluginapi.Agent{Id: "demo", Demo: true}, Installed: true, SignedIn: true, PlatformOK: true},
			{Description: &pluginapi.Agent{Id: "other"}},
			{Description: &pluginapi.Agent{Id: "other-remote", Configurable: true}, Installed: true, SignedIn: true, PlatformOK: true},
		}
	}
	for name, test := range map[string]struct {
		agents []host.AgentInfo
		runs   []host.RunInfo
		want   []string
		not    string
	}{
		"signed in":  {agents(true, true), nil, []string{"Ready          codex 1.2.3\n", "Not installed  claude\n", `amux run codex "why`, `amux run demo "hello"`}, "Runs"},
		"signed out": {agents(true, false), nil, []string{"Not signed in  codex 1.2.3\n", "amux agents auth codex", "run codex login"}, "amux run codex"},
		"nothing": {agents(false, false), []host.RunInfo{{ID: clitest.RunID, State: "running"}, {ID: clitest.RunID, State: "waiting"}},
			[]string{"Not installed  codex, claude\n", "amux agents install claude", "Runs           2 runs (amux ps), 1 question for you\n"}, "amux run codex"},
	} {
		b := newBench(t, "")
		b.Settings("this is no TOML")
		b.Host.AgentList, b.Host.RunList = test.agents, test.runs
		if code := b.Main(); code != 0 {
			t.Errorf("%s: code %d: %s", name, code, b.Err)
		}
		for _, want := range test.want {
			if !strings.Contains(b.Out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, b.Out)
			}
		}
		if strings.Contains(b.Out.String(), test.not) || strings.Contains(b.Out.String(), "other") {
			t.Errorf("%s: %q in\n%s", name, test.not, b.Out)
		}
	}
}
