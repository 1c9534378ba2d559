package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}}) }

// TestMore has the recordings that are much like others.
func TestMore(t *testing.T) {
	if testing.Short() {
		t.Skip("recordings that are much like others")
	}
	adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}, Dir: "testdata/more"})
}

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, adapter{}) }

// Describe claims exactly the event types that transcripts and stored sessions
// have: adaptertest finds one too few, this test one too many.
func TestEventTypes(t *testing.T) {
	seen := map[string]bool{}
	typeOf := regexp.MustCompile(`(?m)^(?:\{"type":"|[0-9:.]+ )([a-z_]+)[" ]`)
	for _, pattern := range []string{"testdata/*.txtar", "testdata/*.golden"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, events, ok := bytes.Cut(content, []byte("-- events.ndjson --")); ok {
				content = events
			} else if strings.HasSuffix(file, ".txtar") {
				continue
			}
			for _, m := range typeOf.FindAllSubmatch(content, -1) {
				seen[string(m[1])] = true
			}
		}
	}
	for _, claimed := range eventTypes {
		if !seen[string(claimed)] {
			t.Errorf("no transcript has %s", claimed)
		}
		delete(seen, string(claimed))
	}
	for other := range seen {
		t.Errorf("%s is not claimed", other)
	}
}

func TestManifest(t *testing.T) {
	manifest, err := os.ReadFile("amux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	agent := adapter{}.Describe()
	for _, want := range []string{`name = "codex"`, `version = "` + version + `"`, `id = "` + agent.Id + `"`, `command = "` + agent.Program + `"`, `versions = ">=` + agent.Versions.Minimum + `"`, strings.Join(agent.Installs[0].Argv, " ")} {
		if !bytes.Contains(manifest, []byte(want)) {
			t.Errorf("amux-plugin.toml lacks %s", want)
		}
	}
	capabilities, err := json.Marshal(agent.Capabilities)
	if err != nil {
		t.Fatal(err)
	}
	var has map[string]bool
	json.Unmarshal(capabilities, &has)
	for name := range has {
		if !bytes.Contains(manifest, []byte(`"`+name+`"`)) {
			t.Errorf("amux-plugin.toml lacks the capability %s", name)
		}
	}
	if m := regexp.MustCompile(agent.Versions.Pattern).FindStringSubmatch("codex-cli 0.169.0"); m == nil || m[1] != "0.169.0" {
		t.Errorf("the pattern of the version found %q", m)
	}
}

// Every option goes into the parameters of the conversation, and nothing of it on
// the command line.
func TestPlanState(t *testing.T) {
	plan, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{RunId: "R", SessionId: "S", Caller: &pluginapi.Caller{Cwd: "/w"}, Options: &pluginapi.RunOptions{
		Model: "gpt-5.5", SystemPrompt: "be nice", NoSession: true, AddDirs: []string{"/extra"}, DenyRules: []string{"exec_command(rm *)"},
		JsonSchema: `{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":true}}}`,
		McpServers: []*pluginapi.McpServer{{Name: "m", Command: "/bin/m", Env: map[string]string{"SOME_TOKEN": "very-secret"}}},
		Attachments: []*pluginapi.Attachment{
			{Path: "/a/i.png", Content: []byte("\x89PNG\r\n\x1a\n")},
			{Path: "/a/n.txt", Content: []byte("line <1>")},
		},
		Approve: pb.Approve_APPROVE_AUTO,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(plan.State, []byte("very-secret")) || plan.EnvSet["SOME_TOKEN"] != "very-secret" {
		t.Errorf("the secret is not in the environment alone: %s %v", plan.State, plan.EnvSet)
	}
	if len(plan.Warnings) != 1 || !slices.Equal(plan.Args, []string{"app-server"}) {
		t.Errorf("warnings %q, args %q", plan.Warnings, plan.Args)
	}
	var got map[string]any
	if err := json.Unmarshal(plan.State, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"salt": "R/S",
		"thread": map[string]any{
			"cwd": "/w", "model": "gpt-5.5", "approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": "workspace-write",
			"developerInstructions": "be nice", "ephemeral": true,
			"config": map[string]any{
				"mcp_servers":                            map[string]any{"m": map[string]any{"command": "/bin/m", "env_vars": []any{"SOME_TOKEN"}}},
				"shell_environment_policy.exclude":       []any{"SOME_TOKEN"},
				"sandbox_workspace_write.writable_roots": []any{"/extra"},
			},
		},
		"schema": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
			"a": map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": true}}},
		"input": []any{
			map[string]any{"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="},
			map[string]any{"type": "text", "text": "<file name=\"n.txt\">\nline <1>\n</file>", "text_elements": []any{}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for approve, policy := range map[pb.Approve]string{
		pb.Approve_APPROVE_UNKNOWN: "untrusted", pb.Approve_APPROVE_ASK: "untrusted", pb.Approve_APPROVE_DENY: "untrusted", pb.Approve_APPROVE_RULES: "untrusted",
	} {
		plan, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{Options: &pluginapi.RunOptions{Approve: approve}})
		if err != nil || !bytes.Contains(plan.State, []byte(`"approvalPolicy":"`+policy+`"`)) {
			t.Errorf("%v: %s, %v", approve, plan.GetState(), err)
		}
	}
	// In a sandbox of amux it makes none of its own, and asks as before.
	plan, err = adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{Options: &pluginapi.RunOptions{
		Approve: pb.Approve_APPROVE_ASK, Env: map[string]string{pluginapi.SandboxEnv: "1"},
	}})
	if err != nil || !bytes.Contains(plan.State, []byte(`"sandbox":"danger-full-access"`)) || !bytes.Contains(plan.State, []byte(`"approvalPolicy":"untrusted"`)) {
		t.Errorf("in a sandbox: %s, %v", plan.GetState(), err)
	}
}

// A refusal names the agent, the option, and what is possible instead.
func TestPlanRefusals(t *testing.T) {
	for name, options := range map[string]*pluginapi.RunOptions{
		"effort":       {Effort: "enormous"},
		"budget":       {MaxBudgetUsd: 1},
		"transport":    {McpServers: []*pluginapi.McpServer{{Name: "a", Transport: "sse", Url: "https://a"}}},
		"attachments":  {Attachments: []*pluginapi.Attachment{{Name: "a"}}},
		"binary":       {Attachments: []*pluginapi.Attachment{{Name: "a", Content: []byte{0, 1, 2}}}},
		"exec asks":    {Driver: driverExec, Approve: pb.Approve_APPROVE_ASK},
		"exec system":  {Driver: driverExec, SystemPrompt: strings.Repeat("x", maxArgument+1)},
		"exec replace": {Driver: driverExec, SystemPrompt: strings.Repeat("x", maxArgument+1), SystemPromptMode: "replace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{Options: options})
			e, ok := errors.AsType[*pluginapi.Error](err)
			if !ok || e.Code != pluginapi.CodeCapability || !strings.Contains(e.Msg, "codex") || e.Hint == "" {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestNativeEffort(t *testing.T) {
	all := []string{"low", "medium", "high", "xhigh", "max", "ultra"}
	for _, c := range []struct {
		effort string
		has    []string
		want   string // empty: refused
	}{
		{"low", all, "low"}, {"max", all, "max"}, {"ultra", all, "ultra"},
		{"max", all[:4], "xhigh"}, {"max", all[:3], "high"}, {"xhigh", all[:3], ""}, {"ultra", all[:5], ""},
		{"high", nil, "high"}, {"max", nil, ""},
	} {
		got, err := nativeEffort(c.effort, "m", c.has)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, pluginapi.CodeCapability) {
			t.Errorf("%s of %v: got %q, %v", c.effort, c.has, got, err)
		}
	}
}

func TestShellWords(t *testing.T) {
	for text, want := range map[string][]string{
		`/bin/bash -lc 'echo hi'`:          {"/bin/bash", "-lc", "echo hi"},
		`/bin/bash -lc "echo \"a\" $X"`:    {"/bin/bash", "-lc", `echo "a" $X`},
		`a 'it'"'"'s' b`:                   {"a", "it's", "b"},
		`a\ b  c`:                          {"a b", "c"},
		`a ''`:                             {"a", ""},
		`a "open`:                          nil,
		`a 'open`:                          nil,
		`a\`:                               nil,
		``:                                 nil,
		`/bin/bash -lc 'a' && rm '/tmp/x'`: {"/bin/bash", "-lc", "a", "&&", "rm", "/tmp/x"},
	} {
		if got := shellWords(text); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestDetectAuth(t *testing.T) {
	write := func(t *testing.T, text string) *pluginapi.Caller {
		home := t.TempDir()
		if text != "" {
			if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, ".codex", "auth.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return &pluginapi.Caller{Home: home, Os: "linux", Env: map[string]string{}}
	}
	// {"email":"a@example.org"}
	const token = "x.eyJlbWFpbCI6ImFAZXhhbXBsZS5vcmcifQ.y"
	for _, c := range []struct {
		name, file, key          string
		status, method, identity string
	}{
		{"nothing", "", "", "unauthenticated", "", ""},
		{"a key that app-server does not use", "", "sk-secret-1", "unauthenticated", "", ""},
		{"key kept", `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-secret-2"}`, "", "authenticated", "api_key", ""},
		{"ChatGPT", `{"OPENAI_API_KEY":null,"tokens":{"id_token":"` + token + `","access_token":"secret-3"}}`, "", "authenticated", "oauth", "a@example.org"},
		{"ChatGPT without an address", `{"tokens":{"id_token":"no","access_token":"secret-4"}}`, "", "authenticated", "oauth", ""},
		{"broken", `{`, "", "unknown", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller := write(t, c.file)
			if c.key != "" {
				caller.Env["CODEX_API_KEY"] = c.key
			}
			resp, err := adapter{}.DetectAuth(t.Context(), &pluginapi.AuthRequest{Caller: caller})
			if err != nil || len(resp.States) != 1 || len(resp.Guidance) == 0 {
				t.Fatalf("got %v, %v", resp, err)
			}
			state := resp.States[0]
			if state.Status != c.status || state.Identity != c.identity || c.method != "" && state.Method != c.method {
				t.Errorf("got %v", state)
			}
			if strings.Contains(resp.String(), "secret") {
				t.Errorf("a secret is in %v", resp)
			}
		})
	}
}
