package settings

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

const profiles = `agent = 'claude'
model = 'opus'
timeout = '1h'
tags = ['mine']
approve = 'ask'
%
[hooks]
before_run = 'mine'
after_run = 'mine'

[profiles.fast]
model = 'haiku'
tags = ['fast']
approve = 'auto'
allow = ['Edit']
max_cost = 2
max_turns = 3
hooks.on_question = 'fast'

[profiles.fast.hooks]
after_run = ['fast']

[profiles.other]
agent = 'codex'

[profiles.empty]
`

// A profile wins over the rest of the user's file, and the project's file over a profile. One
// that the project names brings none of the user's permissions and limits.
func TestProfiles(t *testing.T) {
	t.Parallel()
	plain := Settings{Agent: "claude", Model: "opus", Timeout: time.Hour, Tags: []string{"mine"}, Approve: "ask"}
	plain.Hooks = Hooks{BeforeRun: Command{Line: "mine"}, AfterRun: Command{Line: "mine"}}
	fast := plain
	fast.Model, fast.Tags, fast.Approve = "haiku", []string{"mine", "fast"}, "auto"
	fast.Only = ProfileOnly{Name: "fast", MaxTurns: 3, MaxCost: 2, Allow: []string{"Edit"}}
	fast.Hooks.AfterRun, fast.Hooks.OnQuestion = Command{Argv: []string{"fast"}}, Command{Line: "fast"}
	foreign := plain
	foreign.Model, foreign.Tags = "haiku", []string{"mine", "fast"}
	for _, test := range []struct {
		name, user, project, profile string
		change                       func(s *Settings)
		want                         Settings
	}{
		{"none", "", "", "", nil, plain},
		{"named", "", "", "fast", nil, fast},
		{"the user's", "profile = 'fast'", "", "", nil, fast},
		{"not the user's this time", "profile = 'fast'", "", "none", nil, plain},
		{"the project's", "", "profile = 'fast'", "", nil, foreign},
		{"the project's, which the user names", "", "profile = 'fast'", "fast", nil, fast},
		{"another than the project's", "", "profile = 'fast'", "empty", func(s *Settings) { s.Only.Name = "empty" }, plain},
		{"below the project's file", "", "model = 'sonnet'", "fast", func(s *Settings) { s.Model = "sonnet" }, fast},
		{"for another agent", "", "", "other", func(s *Settings) { s.Agent, s.Model, s.Only.Name = "codex", "", "other" }, plain},
	} {
		config, project := t.TempDir(), t.TempDir()
		write(t, config, strings.Replace(profiles, "%", test.user, 1))
		write(t, filepath.Join(project, ".agent-mux"), test.project)
		got, err := LoadProfile(config, project, test.profile)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got.Profile, got.Profiles = "", nil
		want := test.want
		if test.change != nil {
			test.change(&want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		values, err := Values(config, project, test.profile)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		for _, v := range values {
			if v.Key == "model" && Plain(v.Text) != want.Model || v.Key == "approve" && Plain(v.Text) != want.Approve || v.Key == "agent" && Plain(v.Text) != want.Agent {
				t.Errorf("%s: listed as %+v", test.name, v)
			}
			if (v.Key == "approve" || v.Key == "hooks.after_run") && strings.HasSuffix(v.Origin, " (profile fast)") != (want.Approve == "auto") {
				t.Errorf("%s: %+v", test.name, v)
			}
		}
	}
}

func TestProfileErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		user, project, profile string
		code                   pluginapi.Code
		want                   string
	}{
		{"", "", "fsat", pluginapi.CodeProfileNotFound, `the profile "fsat" is not in config.toml`},
		{"", "profile = 'work'", "", pluginapi.CodeProfileNotFound, `the profile "work", which the project names, is not in config.toml`},
		{"", "[profiles.evil]\napprove = 'auto'", "", pluginapi.CodeConfig, "config.toml:1: [profiles.evil] is not allowed in a project's file"},
		{"[profiles.a]\nmax_runs = 1", "", "", pluginapi.CodeConfig, "max_runs: unknown key; the keys of a profile are agent, "},
		{"[profiles.a]\napprove = 'yes'", "", "", pluginapi.CodeConfig, "approve: expected one of ask, auto, deny"},
		{"[profiles.none]\nmodel = 'a'", "", "", pluginapi.CodeConfig, "[profiles.none]: expected a name"},
		{"[profiles.fast]", "", "", pluginapi.CodeConfig, "[profiles.fast] is there twice"},
		{"[profiles.A]\nmodel = 'a'", "", "", pluginapi.CodeConfig, "[profiles.A]: expected a name"},
		{"[profiles.a]\nmax_cost = -1", "", "", pluginapi.CodeConfig, "max_cost: expected dollars"},
	} {
		config, project := t.TempDir(), t.TempDir()
		write(t, config, strings.Replace(profiles, "%", test.user, 1))
		write(t, filepath.Join(project, ".agent-mux"), test.project)
		_, err := LoadProfile(config, project, test.profile)
		if e := pluginapi.AsError(err); e == nil || e.Code != test.code || !strings.Contains(e.Error(), test.want) || strings.Contains(e.Error(), "\n") {
			t.Errorf("%s%s: %v", test.user, test.project, err)
		}
	}
}
