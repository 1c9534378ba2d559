package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

func write(t *testing.T, dir, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, user, project string
		want                Settings
	}{
		{"nothing", "", "", Settings{}},
		{"all of the user's", `
# comment
agent = "claude"
model = "opus"
effort = "max"
system_prompt = """two
lines"""
tags = ["a", "b"]
timeout = "1h"
idle_timeout = "0s"
approve = "auto"
grace = "2s"
retry = 5
max_runs = 4
always_verify = true
auto_mtls = true
require = "signature"
[dev_overrides]
acme = "/src/acme"
"with space" = 'C:\x'
`, "", Settings{Agent: "claude", Model: "opus", Effort: "max", SystemPrompt: "two\nlines", Tags: []string{"a", "b"},
			Timeout: time.Hour, IdleTimeout: -1, Approve: "auto", Grace: 2 * time.Second, Retry: 5, MaxRuns: 4, AlwaysVerify: true, AutoMTLS: true, Require: "signature",
			DevOverrides: map[string]string{"acme": "/src/acme", "with space": `C:\x`}}},
		{"the project's wins", "agent = 'claude'\nmodel = 'opus'\ntags = ['a']\ntimeout = '1h'", "model = 'haiku'\ntags = ['p']\ntimeout = '5m'",
			Settings{Agent: "claude", Model: "haiku", Tags: []string{"a", "p"}, Timeout: 5 * time.Minute}},
		{"the project's agent drops the user's model", "agent = 'claude'\nmodel = 'opus'\neffort = 'low'", "agent = 'codex'", Settings{Agent: "codex"}},
		{"agents of the user's own", "[agents.a]\nadapter = 'command'\ncommand = 'x | y'\n[agents.b]\ncommand = ['x', '']\nadapter = 'acp'", "",
			Settings{Own: Own{Agents: map[string]Agent{"a": {Adapter: "command", Line: "x | y"}, "b": {Adapter: "acp", Argv: []string{"x", ""}}}}}},
		{"budgets", "[budgets.run]\ncost = 2\n[budgets.day]\ncost = 2.5\ntokens = 2_000\n[budgets.tags.\"a.b\"]\ntokens = 1\n[budgets.projects.\"/home/" + strings.Repeat("x", 200) + "/../a.b\"]\ncost = 1e2\nper = 'total'", "",
			Settings{Budgets: []Budget{{Kind: "run", Cost: 2}, {Kind: "day", Cost: 2.5, Tokens: 2000}, {Kind: "tag", Of: "a.b", Per: "day", Tokens: 1}, {Kind: "project", Of: "/home/a.b", Per: "total", Cost: 100}}}},
		{"notifications", "[notify]\nbell = true\nterminal = 'osc9'\ncommand = ['x', 'y']\nafter = '5m'", "",
			Settings{Notify: Notify{Bell: true, Terminal: "osc9", Command: Command{Argv: []string{"x", "y"}}, After: 5 * time.Minute}}},
		{"hooks", "[hooks]\nbefore_run = ['a', 'b']\nafter_run = 'c'\n", "", Settings{Hooks: Hooks{BeforeRun: Command{Argv: []string{"a", "b"}}, AfterRun: Command{Line: "c"}}}},
		{"hooks, dotted", "hooks.on_question = 'q'\nhooks.timeout = '2m'", "", Settings{Hooks: Hooks{OnQuestion: Command{Line: "q"}, Timeout: 2 * time.Minute}}},
		{"telemetry", "[telemetry]\nenabled = false\nendpoint = 'https://otel.example/v'\ncontent = true", "",
			Settings{Records: Records{Telemetry: Telemetry{Enabled: "false", Endpoint: "https://otel.example/v", Content: true}}}},
		{"kept", "[keep]\nruns = 5\ndays = 0", "", Settings{Records: Records{Keep: Keep{Runs: new(5), Days: new(0)}}}},
		{"notifications, dotted", "notify.command = 'x | y'\nnotify.after = '0s'", "", Settings{Notify: Notify{Command: Command{Line: "x | y"}, After: -1}}},
		{"dotted override", "dev_overrides.acme = '/x'", "", Settings{DevOverrides: map[string]string{"acme": "/x"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, project := t.TempDir(), t.TempDir()
			write(t, config, test.user)
			write(t, filepath.Join(project, ".agent-mux"), test.project)
			got, err := Load(config, project)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got, err := Load(t.TempDir(), ""); err != nil || !cmp.Equal(got, Settings{}) {
		t.Errorf("no files: %+v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, user, project, want string }{
		{"unknown key", "agent = 'x'\n\nmodle = 'y'\n", "", "config.toml:3: unknown key modle"},
		{"unknown table", "agent = 'x'\n[servers]\n", "", "config.toml:2: unknown table [servers]"},
		{"agent without an adapter", "[agents.a]\ncommand = 'x'", "", "config.toml: [agents.a] needs adapter"},
		{"agent without a command", "[agents.a]\nadapter = 'command'", "", "config.toml: [agents.a] needs command"},
		{"agent with an empty command", "[agents.a]\nadapter = 'command'\ncommand = []", "", "config.toml:3: agents.a.command: expected a shell command line"},
		{"agent's unknown key", "[agents.a]\nshell = true", "", "config.toml:2: agents.a.shell: unknown key"},
		{"agent's name", "[agents.A-]\nadapter = 'command'", "", "config.toml:1: [agents.A-]: expected a name"},
		{"project brings a command", "", "[agents.a]\nadapter = 'command'\ncommand = 'evil'", "config.toml:1: [agents.a] is not allowed in a project's file"},
		{"no TOML", "agent = 'x'\nmodel =\n", "", "config.toml:2: "},
		{"number for a text", "agent = 5", "", "config.toml:1: agent: expected a string in quotes"},
		{"no such effort", "effort = 'extreme'", "", "config.toml:1: effort: expected one of low, medium, high, max"},
		{"duration without a unit", "\ntimeout = 600", "", "config.toml:2: timeout: expected a duration in quotes"},
		{"duration without a unit, quoted", "timeout = '600'", "", "config.toml:1: timeout: expected a duration with a unit"},
		{"runs in words", "max_runs = 'four'", "", "config.toml:1: max_runs: expected a number, 0 or more"},
		{"less than no runs", "max_runs = -1", "", "config.toml:1: max_runs: expected a number, 0 or more"},
		{"project retries", "", "retry = 3", "config.toml:1: retry is not allowed in a project's file"},
		{"retries in words", "retry = true", "", "config.toml:1: retry: expected a number, 0 or more"},
		{"more than is ever kept", "[keep]\nruns = 1000001", "", "config.toml:2: keep.runs: expected a number up to 1000000; 0: no limit"},
		{"kept for less than no days", "[keep]\ndays = -1", "", "config.toml:2: keep.days: expected a number up to 10000; 0: no limit"},
		{"project keeps runs", "", "[keep]\nruns = 1", "config.toml:1: [keep] is not allowed in a project's file"},
		{"project limits runs", "", "max_runs = 1", "config.toml:1: max_runs is not allowed in a project's file"},
		{"tags", "tags = 'a'", "", "config.toml:1: tags: expected a list"},
		{"project approves", "", "agent = 'x'\napprove = 'auto'", "config.toml:2: approve is not allowed in a project's file"},
		{"project overrides", "", "[dev_overrides]\nclaude = './evil'", "config.toml:1: [dev_overrides] is not allowed in a project's file"},
		{"no such budget", "[budgets.week]\ncost = 1", "", "config.toml:1: [budgets.week]: expected [budgets.run], [budgets.day]"},
		{"budget of a folder", "[budgets.projects.app]\ncost = 1", "", "config.toml:1: [budgets.projects.app]: expected"},
		{"budgets alone", "[budgets]\ncost = 1", "", "config.toml:1: [budgets]: expected"},
		{"budget twice", "[budgets.day]\ncost = 1\n[budgets.day]\ncost = 2", "", "config.toml:3: [budgets.day]: expected"},
		{"no money", "[budgets.day]\ncost = 0", "", "config.toml:2: cost: expected dollars"},
		{"endless money", "[budgets.day]\ncost = inf", "", "config.toml:2: cost: expected dollars"},
		{"half a token", "[budgets.day]\ntokens = 1.5", "", "config.toml:2: tokens: expected a number"},
		{"day of a day", "[budgets.day]\nper = 'day'", "", "config.toml:2: per: only budgets of tags and projects"},
		{"budget per week", "[budgets.tags.a]\nper = 'week'", "", "config.toml:2: per: expected one of day, month, total"},
		{"budget's unknown key", "[budgets.tags.a]\nusd = 1", "", "config.toml:2: usd: unknown key"},
		{"project's budget", "", "[budgets.day]\ncost = 1000000", "config.toml:1: [budgets.day] is not allowed in a project's file"},
		{"notification without a command", "[notify]\ncommand = []", "", "config.toml:2: notify.command: expected a shell command line"},
		{"no such notification", "[notify]\nterminal = 'osc8'", "", "config.toml:2: notify.terminal: expected one of osc9, osc777, off"},
		{"unknown key of notifications", "[notify]\nbel = true", "", "config.toml:2: unknown key notify.bel"},
		{"telemetry without a scheme", "[telemetry]\nendpoint = 'localhost:4318'", "", "config.toml:2: telemetry.endpoint: expected a URL such as"},
		{"telemetry with a password", "telemetry.endpoint = 'https://a:b@host'", "", "config.toml:1: telemetry.endpoint: expected a URL such as"},
		{"telemetry, not a boolean", "[telemetry]\nenabled = 'yes'", "", "config.toml:2: telemetry.enabled: expected true or false"},
		{"project sends telemetry", "", "[telemetry]\nenabled = true", "config.toml:1: [telemetry] is not allowed in a project's file"},
		{"project sends telemetry, dotted", "", "telemetry.endpoint = 'http://evil'", "config.toml:1: telemetry.endpoint is not allowed in a project's file"},
		{"project notifies", "", "[notify]\ncommand = 'evil'", "config.toml:1: [notify] is not allowed in a project's file"},
		{"project notifies, dotted", "", "notify.command = 'evil'", "config.toml:1: notify.command is not allowed in a project's file"},
		{"hook without a command", "[hooks]\nbefore_run = ''", "", "config.toml:2: hooks.before_run: expected a shell command line"},
		{"unknown hook", "[hooks]\nbefore = 'x'", "", "config.toml:2: unknown key hooks.before"},
		{"hooks of no agent", "[agents.x.hooks]\nbefore_run = 'x'", "", "config.toml:1: [agents.x.hooks]: expected a name"},
		{"unknown hook of a profile", "[profiles.x.hooks]\nafter = 'x'", "", "config.toml:2: hooks.after: unknown key"},
		{"project brings hooks", "", "[hooks]\nbefore_run = 'evil'", "config.toml:1: [hooks] is not allowed in a project's file"},
		{"project brings hooks, dotted", "", "hooks.after_run = 'evil'", "config.toml:1: hooks.after_run is not allowed in a project's file"},
		{"project brings hooks in a profile", "", "[profiles.x.hooks]\nafter_run = 'evil'", "config.toml:1: [profiles.x.hooks] is not allowed in a project's file"},
		{"project overrides, dotted", "", "dev_overrides.claude = './evil'", "config.toml:1: unknown key dev_overrides.claude"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, project := t.TempDir(), t.TempDir()
			write(t, config, test.user)
			write(t, filepath.Join(project, ".agent-mux"), test.project)
			_, err := Load(config, project)
			e := pluginapi.AsError(err)
			if e == nil || e.Code != pluginapi.CodeConfig || !strings.Contains(e.Error(), test.want) || strings.Contains(e.Error(), "\n") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
