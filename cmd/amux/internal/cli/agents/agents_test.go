package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func newBench(t *testing.T, stdin string) *clitest.Bench {
	return clitest.New(t, stdin, clitest.Commands(func(a *app.App) *cobra.Command { return NewCmd(a, Rest) }))
}

func TestAgentsList(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.AgentList = append(b.Host.AgentList,
		clitest.Agent("old", func(a *host.AgentInfo) { a.Version = "2.1.3"; a.SignedIn = false; a.Auth[0].Status = "expired" }),
		clitest.Agent("rare", func(a *host.AgentInfo) { a.Description.Unproven = true; a.PlatformOK = false; a.Installed = false }),
		host.AgentInfo{Description: &pluginapi.Agent{Id: "torn"}, Plugin: "torn", Err: pluginapi.Errorf(pluginapi.CodePluginInvalid, "no describe.json")})
	if code := b.Main("agents", "list"); code != 0 {
		t.Fatalf("code %d: %s", code, b.Err)
	}
	want := `AGENT  INSTALLED                   AUTH        PLUGIN       TRUST
alpha  yes                         yes         alpha 1.0.0  bundled
beta   no                          yes         beta 1.0.0   bundled
demo   yes                         not needed  demo 1.0.0   bundled  demo
old    2.1.3                       expired     old 1.0.0    bundled
rare   no build for this platform  yes         rare 1.0.0   bundled  unproven
torn   -                           -           torn                  broken: no describe.json
`
	if b.Out.String() != want {
		t.Errorf("got\n%swant\n%s", b.Out, want)
	}
	b2 := newBench(t, "")
	b2.Host.AgentList = b.Host.AgentList
	var list []agentJSON
	if code := b2.Main("agents", "list", "--json"); code != 0 || json.Unmarshal([]byte(b2.Out.String()), &list) != nil || len(list) != 6 {
		t.Fatalf("code %d: %s", code, b2.Out)
	}
	if list[5].Error == nil || list[5].Error.Code != pluginapi.CodePluginInvalid || !list[4].Unproven || list[0].Auth[0].Found != "env P_KEY" {
		t.Errorf("%+v", list)
	}
}

func TestAgentsInfo(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.AgentList[0].Description.Notes = []string{strings.Repeat("a long note ", 20)}
	if code := b.Main("agents", "info", "alpha"); code != 0 || !strings.Contains(b.Out.String(), "alpha: Agent alpha") ||
		!strings.Contains(b.Out.String(), "approvals, system append") {
		t.Errorf("code %d: %s %s", code, b.Out, b.Err)
	}
	for line := range strings.Lines(b.Out.String()) {
		if len(line) > 81 {
			t.Errorf("long line: %q", line)
		}
	}
	b = newBench(t, "")
	var got struct {
		Agent       string
		Description map[string]any
	}
	if code := b.Main("agents", "info", "alpha", "--json"); code != 0 || json.Unmarshal([]byte(b.Out.String()), &got) != nil ||
		got.Agent != "alpha" || got.Description["id"] != "alpha" {
		t.Errorf("code %d: %s", code, b.Out)
	}
	b = newBench(t, "")
	if code := b.Main("agents", "info", "gamma"); code != 3 {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

func TestAgentsAuth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		response *pluginapi.AuthResponse
		code     int
		out, err string
	}{
		{"not needed", &pluginapi.AuthResponse{}, 0, "needs no sign-in", ""},
		{"signed in", &pluginapi.AuthResponse{States: []*pluginapi.AuthState{{Provider: "p", Status: "authenticated", Identity: "me", ExpiresUnixMs: 1}}}, 0, "me", ""},
		{"not signed in", &pluginapi.AuthResponse{States: []*pluginapi.AuthState{{Provider: "p", Status: "expired"}}, Guidance: []string{"sign in"}}, 5, "expired", "hint: sign in"},
	} {
		for _, asJSON := range []string{"--json=false", "--json"} {
			b := newBench(t, "")
			b.Host.Auth = test.response
			code := b.Main("agents", "auth", "alpha", asJSON)
			if code != test.code {
				t.Errorf("%s: code %d", test.name, code)
			}
			if asJSON == "--json" {
				if !json.Valid([]byte(b.Out.String())) || b.Err.String() != "" {
					t.Errorf("%s: %s %s", test.name, b.Out, b.Err)
				}
			} else if !strings.Contains(b.Out.String(), test.out) || !strings.Contains(b.Err.String(), test.err) {
				t.Errorf("%s: %s %s", test.name, b.Out, b.Err)
			}
		}
	}
}

// The agent is asked where it can be; else its adapter is.
func TestAgentsModels(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.Main("agents", "models", "alpha"); code != 0 || b.Out.String() != "" || b.Err.String() != "amux: no models are known for alpha; it may have some all the same\n" {
		t.Errorf("code %d: %q %q", code, b.Out, b.Err)
	}
	b.Host.AgentList[0].Description.Models = []*pluginapi.Model{{Id: "big", Aliases: []string{"b", "huge"}, IsDefault: true}}
	if code := b.Main("agents", "models", "alpha"); code != 0 || b.Out.String() != "MODEL  NAME  ALIASES\nbig    -     b, huge  default\n" {
		t.Errorf("code %d: %q", code, b.Out)
	}
	b = newBench(t, "")
	b.Host.ModelList = []*pluginapi.Model{{Id: "a/one", DisplayName: "One"}, {Id: "b\x1b[31m"}}
	b.Host.AgentList[0].Description.Capabilities.ListModels = true
	if code := b.Main("agents", "models", "alpha"); code != 0 || b.Out.String() != "MODEL  NAME  ALIASES\na/one  One   -\nb      -     -\n" {
		t.Errorf("code %d: %q", code, b.Out)
	}
}

func TestAgentsPlugins(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.PluginList = []*pluginapi.AgentPlugin{
		{Id: "hello@local", Version: "1.2.3", Source: "local", Path: "/p"}, {Id: "b\x1b[31m", Disabled: true},
	}
	if code := b.Main("agents", "plugins", "alpha"); code != 0 || b.Out.String() != ""+
		"PLUGIN       VERSION            SOURCE\nhello@local  1.2.3    enabled   local\nb            -        disabled  -\n" {
		t.Errorf("code %d: %q", code, b.Out)
	}
	b = newBench(t, "")
	b.Host.PluginList = []*pluginapi.AgentPlugin{{Id: "hello", Version: "1.2.3", Source: "local", Path: "/p", Description: "d"}}
	var got []map[string]any
	if code := b.Main("agents", "plugins", "alpha", "--json"); code != 0 || json.Unmarshal([]byte(b.Out.String()), &got) != nil || !cmp.Equal(got,
		[]map[string]any{{"id": "hello", "version": "1.2.3", "source": "local", "path": "/p", "description": "d", "enabled": true}}) {
		t.Errorf("code %d: %s", code, b.Out)
	}
	b = newBench(t, "")
	if code := b.Main("agents", "plugins", "alpha"); code != 0 || b.Out.String() != "" || b.Err.String() != "amux: alpha has no extensions of its own\n" {
		t.Errorf("code %d: %q %q", code, b.Out, b.Err)
	}
	b = newBench(t, "")
	if code := b.Main("agents", "plugins", "demo"); code != 6 || strings.Count(b.Err.String(), "error: ") != 1 || !strings.Contains(b.Err.String(), "agent demo: its adapter cannot list plugins") {
		t.Errorf("code %d: %q", code, b.Err)
	}
}

// Servers are listed without values. What is added takes its values from the environment or
// from --values, never from the command line, and an error does not repeat one.
func TestAgentsMCP(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.Host.MCPList = []host.OwnMCPServer{
		{Name: "files", Transport: "stdio", Command: "srv", Args: []string{"-x"}, Env: []string{"KEY"}, Enabled: true, Scope: "user", Path: "/p"},
		{Name: "t\x1b[31m", Transport: "http", URL: "http://h/", Headers: []string{"A"}, Scope: "project", Path: "/q"},
	}
	if code := b.Main("agents", "mcp", "list", "alpha"); code != 0 || b.Out.String() != ""+
		"SERVER  SCOPE              TRANSPORT  COMMAND OR ADDRESS  ENV AND HEADERS\nfiles   user     enabled   stdio      srv -x              KEY\nt       project  disabled  http       http://h/           A\n" {
		t.Errorf("code %d: %s", code, b.Out)
	}
	for line, want := range map[string]struct {
		code  int
		asked string // of the host
		err   string
	}{
		"alpha files --env KEY=FROM --scope project -- srv -x":         {0, "add project {Name:files Transport:stdio Command:srv Args:[-x] Env:map[KEY:from-env] URL: Headers:map[]}", "added files to /home/u/settings.json"},
		"alpha t http://h/ --header A=LINE --values - --transport sse": {0, "add user {Name:t Transport:sse Command: Args:[] Env:map[] URL:http://h/ Headers:map[A:a=b]}", "added t"},
		"alpha files --env KEY=top-secret -- srv":                      {2, "", "--env KEY: the variable for its value is not set"},
		"alpha files --env =top-secret -- srv":                         {2, "", "invalid --env: expected"},
		"alpha t http://h/ --header top-secret":                        {2, "", "invalid --header: expected NAME=VARIABLE"},
		"alpha t http://h/ --env KEY=FROM":                             {2, "", "--env needs a command"},
		"alpha t http://h/ more":                                       {2, "", "an address takes no argument"},
		"alpha files --header A=FROM -- srv":                           {2, "", "--header needs an address"},
		"alpha files --transport sse -- srv":                           {2, "", "--transport sse needs an address"},
		"alpha t http://h/ --transport pigeon":                         {2, "", "invalid --transport"},
		"alpha t http://h/ --values none --header A=B":                 {2, "", "cannot read --values none"},
		"alpha files":    {2, "", "needs a command or an address"},
		"demo files srv": {6, "", "agent demo: its adapter cannot read and edit"},
	} {
		b := newBench(t, "LINE=a=b\n\n")
		b.Env = append(b.Env, "FROM=from-env")
		code := b.Main(append([]string{"agents", "mcp", "add"}, strings.Fields(line)...)...)
		if code != want.code || !strings.Contains(b.Err.String(), want.err) || strings.Contains(b.Err.String(), "top-secret") {
			t.Errorf("%s: code %d: %s", line, code, b.Err)
		}
		if want.asked != "" && !slices.Contains(b.Host.Asked, want.asked) {
			t.Errorf("%s: asked %q", line, b.Host.Asked)
		}
	}
	b = newBench(t, "top-secret\n")
	if code := b.Main("agents", "mcp", "add", "alpha", "t", "http://h/", "--values", "-", "--header", "A=B"); code != 2 || !strings.Contains(b.Err.String(), "line 1 of --values - is not NAME=VALUE") || strings.Contains(b.Err.String(), "top-secret") {
		t.Errorf("code %d: %s", code, b.Err)
	}
	b = newBench(t, "")
	if code := b.Main("agents", "mcp", "remove", "alpha", "files"); code != 0 || !slices.Contains(b.Host.Asked, `remove "" files`) {
		t.Errorf("code %d: %q", code, b.Host.Asked)
	}
}

func TestAgentsSkills(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.Main("agents", "skills", "list", "alpha"); code != 0 || b.Err.String() != "amux: alpha has no skills of its own\n" {
		t.Errorf("code %d: %s", code, b.Err)
	}
	b.Host.SkillList = []host.Skill{{Name: "hello", Description: "Says hello\x1b[31m", Scope: "user", Path: "/p"}}
	if code := b.Main("agents", "skills", "list", "alpha"); code != 0 || b.Out.String() != "SKILL  SCOPE  DESCRIPTION\nhello  user   Says hello\n" {
		t.Errorf("code %d: %q", code, b.Out)
	}
	for _, line := range []string{"agents skills install alpha /x/hello --scope project", "agents skills remove alpha hello", "agents plugins install alpha a@b", "agents plugins remove alpha a@b"} {
		if code := b.Main(strings.Fields(line)...); code != 0 {
			t.Errorf("%s: code %d: %s", line, code, b.Err)
		}
	}
	if want := []string{"add skill project /x/hello", `remove skill "" hello`, "add plugin a@b", "remove plugin a@b"}; !slices.Equal(b.Host.Asked, want) {
		t.Errorf("asked %q", b.Host.Asked)
	}
	if code := b.Main("agents", "skills", "list", "demo"); code != 6 {
		t.Errorf("code %d", code)
	}
}
