package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func TestVersionAndHelpMakeNoHost(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"--help"}, {"run", "--help"}, {"help", "run"}, {}, {"completion", "bash"}} {
		b := newBench(t, "")
		b.settings("this is no TOML")
		if code := b.main(args...); code != 0 || b.out.String() == "" || b.host.closed {
			t.Errorf("%v: code %d, stdout %q, stderr %s", args, code, b.out, b.err)
		}
	}
}

func TestCommandsAreListedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.main("--help"); code != 0 {
		t.Fatalf("code %d: %s", code, b.err)
	}
	_, list, _ := strings.Cut(b.out.String(), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	seen := map[string]bool{}
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	if !seen["run"] || !seen["attach"] {
		t.Errorf("commands: %v", seen)
	}
}

func TestAgentsList(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.agents = append(b.host.agents,
		agent("old", func(a *host.AgentInfo) { a.Version = "2.1.3"; a.SignedIn = false; a.Auth[0].Status = "expired" }),
		agent("rare", func(a *host.AgentInfo) { a.Description.Unproven = true; a.PlatformOK = false; a.Installed = false }),
		host.AgentInfo{Description: &pluginapi.Agent{Id: "torn"}, Plugin: "torn", Err: pluginapi.Errorf(pluginapi.CodePluginInvalid, "no describe.json")})
	if code := b.main("agents", "list"); code != 0 {
		t.Fatalf("code %d: %s", code, b.err)
	}
	want := `AGENT  INSTALLED                   AUTH        PLUGIN       TRUST
alpha  yes                         yes         alpha 1.0.0  bundled
beta   no                          yes         beta 1.0.0   bundled
demo   yes                         not needed  demo 1.0.0   bundled  demo
old    2.1.3                       expired     old 1.0.0    bundled
rare   no build for this platform  yes         rare 1.0.0   bundled  unproven
torn   -                           -           torn                  broken: no describe.json
`
	if b.out.String() != want {
		t.Errorf("got\n%swant\n%s", b.out, want)
	}
	b2 := newBench(t, "")
	b2.host.agents = b.host.agents
	var list []agentJSON
	if code := b2.main("agents", "list", "--json"); code != 0 || json.Unmarshal([]byte(b2.out.String()), &list) != nil || len(list) != 6 {
		t.Fatalf("code %d: %s", code, b2.out)
	}
	if list[5].Error == nil || list[5].Error.Code != pluginapi.CodePluginInvalid || !list[4].Unproven || list[0].Auth[0].Found != "env P_KEY" {
		t.Errorf("%+v", list)
	}
}

func TestAgentsInfo(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.host.agents[0].Description.Notes = []string{strings.Repeat("a long note ", 20)}
	if code := b.main("agents", "info", "alpha"); code != 0 || !strings.Contains(b.out.String(), "alpha: Agent alpha") ||
		!strings.Contains(b.out.String(), "approvals, system append") {
		t.Errorf("code %d: %s %s", code, b.out, b.err)
	}
	for line := range strings.Lines(b.out.String()) {
		if len(line) > 81 {
			t.Errorf("long line: %q", line)
		}
	}
	b = newBench(t, "")
	var got struct {
		Agent       string
		Description map[string]any
	}
	if code := b.main("agents", "info", "alpha", "--json"); code != 0 || json.Unmarshal([]byte(b.out.String()), &got) != nil ||
		got.Agent != "alpha" || got.Description["id"] != "alpha" {
		t.Errorf("code %d: %s", code, b.out)
	}
	b = newBench(t, "")
	if code := b.main("agents", "info", "gamma"); code != 3 {
		t.Errorf("code %d: %s", code, b.err)
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
			b.host.auth = test.response
			code := b.main("agents", "auth", "alpha", asJSON)
			if code != test.code {
				t.Errorf("%s: code %d", test.name, code)
			}
			if asJSON == "--json" {
				if !json.Valid([]byte(b.out.String())) || b.err.String() != "" {
					t.Errorf("%s: %s %s", test.name, b.out, b.err)
				}
			} else if !strings.Contains(b.out.String(), test.out) || !strings.Contains(b.err.String(), test.err) {
				t.Errorf("%s: %s %s", test.name, b.out, b.err)
			}
		}
	}
}

func TestRecordedRuns(t *testing.T) {
	t.Parallel()
	run := finished(pluginapi.UserMessage{Text: "hi"}, pluginapi.TextDelta{Delta: "answer"}, pluginapi.MessageStop{Text: "answer"}, pluginapi.RunEnd{State: "completed", Turns: 1})
	for _, test := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"logs", runID}, 0, "answer\n", "> hi\n1 turn"},
		{[]string{"logs", runID, "--json"}, 0, `"type":"user_message"`, ""},
		{[]string{"replay", runID}, 0, `"type":"run_end"`, ""},
		{[]string{"replay", runID, "--plugin", "dir"}, 0, "of the other plugin", "amux: replaying with plugin other 2.0.0"},
		{[]string{"replay", runID, "--plugin="}, 2, "", `--plugin "": want the folder of a plugin`},
		{[]string{"replay", runID, "--diff"}, 0, "", ""},
		{[]string{"replay", runID, "--diff", "--plugin", "dir"}, 1, "+++ replayed with other 2.0.0\n", "amux: replaying with plugin other 2.0.0"},
		{[]string{"replay", runID, "--diff", "damaged"}, 17, "", "events.jsonl is damaged at offset 12"},
		{[]string{"inspect", runID}, 0, "state    completed", ""},
		{[]string{"inspect", runID, "--json"}, 0, `"run_id": "` + runID + `"`, ""},
		{[]string{"logs", "nope"}, 2, "", `there is no run "nope"`},
		{[]string{"logs", runID, "damaged"}, 17, "answer\n", "amux: warning: run DGXP98"},
		{[]string{"logs", runID, "--json", "damaged"}, 17, `"type":"user_message"`, "events.jsonl is damaged at offset 12: it is torn\namux: hint: its events can be made again"},
		{[]string{"inspect", runID, "damaged"}, 17, "damaged in 1 place", "events.jsonl is damaged at offset 12"},
		{[]string{"inspect", runID, "--json", "damaged"}, 17, `"offset": 12,`, "events.jsonl is damaged at offset 12"},
		{[]string{"wait", runID, "damaged"}, 17, "", "events.jsonl is damaged at offset 12"},
	} {
		b := newBench(t, "")
		b.host.run = run
		if n := len(test.args) - 1; test.args[n] == "damaged" {
			test.args = test.args[:n]
			b.host.integrity.Damage = []host.Damage{{File: "events.jsonl", Offset: 12, Reason: "it is torn"}}
		}
		if code := b.main(test.args...); code != test.code || !strings.Contains(b.out.String(), test.out) || !strings.Contains(b.err.String(), test.err) {
			t.Errorf("%v: code %d, stdout %s, stderr %s", test.args, code, b.out, b.err)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.main("doctor"); code != 1 {
		t.Errorf("code %d", code)
	}
	for _, want := range []string{"✗ amux-shim: ", "✗ amux-bridge: ", "✗ plugins: there are none", "✓ agent alpha: installed, signed in", "- agent beta: not installed", "✓ runs: 0 active"} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("no %q in\n%s", want, b.out)
		}
	}
	b = newBench(t, "")
	os.MkdirAll(filepath.Join(b.config, "runs", "active"), 0o700)
	os.MkdirAll(filepath.Join(b.config, "runs", runID), 0o700)
	os.WriteFile(filepath.Join(b.config, "runs", "active", runID), nil, 0o600)
	var findings []finding
	if code := b.main("doctor", "--json"); code != 1 || json.Unmarshal([]byte(b.out.String()), &findings) != nil {
		t.Fatalf("code %d: %s", code, b.out)
	}
	if last := findings[len(findings)-1]; last.Status != "fail" || last.Fix != "amux inspect DGXP98" {
		t.Errorf("%+v", last)
	}
	b = newBench(t, "")
	b.settings("x = 1")
	if code := b.main("doctor"); code != 1 || !strings.Contains(b.out.String(), "✗ settings: ") {
		t.Errorf("code %d: %s", code, b.out)
	}
}

// Lines that an adapter has not known lately are told, beside a version it was not
// tested with; what was long ago is not.
func TestDoctorSeesDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	for i := range 2 * recentRuns {
		run := host.RunInfo{ID: runID, Agent: "alpha", End: &pluginapi.RunEnd{}}
		if i == 3 || i == 5 || i == recentRuns {
			run.End.UnknownLines = 4
		}
		b.host.list = append(b.host.list, run, host.RunInfo{Agent: "beta"})
	}
	b.main("doctor")
	if want := "- format of alpha: 8 lines of 2 of its last 20 runs were not understood"; !strings.Contains(b.out.String(), want) || strings.Contains(b.out.String(), "format of beta") {
		t.Errorf("no %q alone in\n%s", want, b.out)
	}
}

func TestProjectDir(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"home/.agent-mux", "home/repo/.git", "home/repo/sub", "home/plain", "home/amux/.agent-mux/x"} {
		os.MkdirAll(filepath.Join(root, dir), 0o700)
	}
	for _, test := range []struct{ cwd, want string }{
		{"home/repo/sub", "home/repo"}, {"home/repo", "home/repo"}, {"home/amux/.agent-mux/x", "home/amux"}, {"home/plain", ""},
	} {
		s := &session{app: &App{Cwd: filepath.Join(root, test.cwd)}}
		want := ""
		if test.want != "" {
			want = filepath.Join(root, test.want)
		}
		if got := s.projectDir(filepath.Join(root, "home/.agent-mux")); got != want && !(want == "" && !strings.HasPrefix(got, root)) {
			t.Errorf("%s: %q, want %q", test.cwd, got, want)
		}
	}
}
