package real

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// onePixel is a PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func pixel(t *testing.T) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// planner is the host's side of a plugin, for Plan alone.
type planner struct{ plugin.NetRPCUnsupportedPlugin }

func (planner) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return errors.ErrUnsupported }

func (planner) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pb.NewAdapterClient(conn), nil
}

// startPlugin builds a plugin and starts it.
func startPlugin(t *testing.T, name string) pb.AdapterClient {
	t.Helper()
	program := filepath.Join(t.TempDir(), "amux-plugin-"+name)
	build := exec.Command("go", "build", "-o", program, "./plugins/"+name)
	build.Dir = tc.Root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build plugin %s: %v\n%s", name, err, output)
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  pluginapi.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{pluginapi.ProtocolMajor: {pluginapi.AdapterService: planner{}}},
		Cmd:              exec.Command(program),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
	})
	t.Cleanup(client.Kill)
	rpc, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := rpc.Dispense(pluginapi.AdapterService)
	if err != nil {
		t.Fatal(err)
	}
	return adapter.(pb.AdapterClient)
}

// TestPlanClaude runs the real CLI with what the adapter plans for each option,
// and looks for the option's effect in what the model was asked. It also finds
// flags in the adapter's source that no case plans.
func TestPlanClaude(t *testing.T) {
	t.Parallel()
	unlessSelected(t, claude, "plan")
	adapter := startPlugin(t, "claude")
	big := strings.Repeat("A long system prompt. ", 6000) + "BIG-MARK"
	extra := t.TempDir()
	type seen struct {
		body   fakemodel.AnthropicRequest
		system string
		text   string // of all messages
		tools  []string
		run    *direct
		result line
		plan   *pluginapi.Plan
		first  string // id of the session before
	}
	cases := []struct {
		name    string
		options *pb.RunOptions
		prompt  string // default "[fm:text]"
		before  bool   // needs an earlier session
		check   func(seen) bool
	}{
		{"nothing", &pb.RunOptions{}, "", false, func(s seen) bool { return s.result.SessionID == s.plan.SessionId }},
		{"conversation", &pb.RunOptions{Conversation: true}, "", false, nil},
		{"ask", &pb.RunOptions{Approve: pb.Approve_APPROVE_ASK}, "[fm:touch=%CWD%/x]", false,
			func(s seen) bool { return strings.Contains(s.run.raw(), "can_use_tool") }},
		{"auto", &pb.RunOptions{Approve: pb.Approve_APPROVE_AUTO}, "", false, nil},
		{"deny", &pb.RunOptions{Approve: pb.Approve_APPROVE_DENY}, "", false, nil},
		{"model", &pb.RunOptions{Model: "haiku"}, "", false, func(s seen) bool { return strings.HasPrefix(s.body.Model, "claude-haiku") }},
		{"effort low", &pb.RunOptions{Effort: "low"}, "", false, func(s seen) bool { return s.body.OutputConfig.Effort == "low" }},
		{"effort max", &pb.RunOptions{Effort: "max"}, "", false, func(s seen) bool { return s.body.OutputConfig.Effort == "max" }},
		{"system append", &pb.RunOptions{SystemPrompt: "MARK-A"}, "", false,
			func(s seen) bool { return strings.Contains(s.system, "MARK-A") && len(s.system) > 1000 }},
		{"system replace", &pb.RunOptions{SystemPrompt: "MARK-R", SystemPromptMode: "replace"}, "", false,
			func(s seen) bool { return strings.Contains(s.system, "MARK-R") && len(s.system) < 2000 }},
		{"system append big", &pb.RunOptions{SystemPrompt: big}, "", false,
			func(s seen) bool { return strings.Contains(s.system, big) }},
		{"system replace big", &pb.RunOptions{SystemPrompt: big, SystemPromptMode: "replace"}, "", false,
			func(s seen) bool { return strings.Contains(s.system, big) }},
		{"system like a flag", &pb.RunOptions{SystemPrompt: "--version"}, "", false,
			func(s seen) bool { return strings.Contains(s.system, "--version") }},
		{"add dirs", &pb.RunOptions{AddDirs: []string{extra, os.TempDir()}}, "", false,
			func(s seen) bool {
				return strings.Contains(s.system+s.text, extra) && strings.Contains(s.system+s.text, os.TempDir()+"\n")
			}},
		{"allow rules", &pb.RunOptions{AllowRules: []string{"Bash(touch *)", "Write"}}, "[fm:touch=%CWD%/x]", false, // which the host applies
			func(s seen) bool { return strings.Contains(s.run.raw(), "can_use_tool") }},
		{"deny rules", &pb.RunOptions{DenyRules: []string{"WebFetch", "WebSearch"}}, "", false,
			func(s seen) bool {
				return !slices.Contains(s.tools, "WebFetch") && !slices.Contains(s.tools, "WebSearch") && slices.Contains(s.tools, "Bash")
			}},
		{"deny a command", &pb.RunOptions{DenyRules: []string{"Bash(echo *)"}}, "[fm:bash]", false,
			func(s seen) bool { return !strings.Contains(s.run.raw(), `"stdout":"hi"`) }},
		{"max turns", &pb.RunOptions{MaxTurns: 1}, "[fm:loop]", false, func(s seen) bool { return s.result.TerminalReason == "max_turns" }},
		{"max budget", &pb.RunOptions{MaxBudgetUsd: 0.0000001}, "[fm:loop]", false, func(s seen) bool { return s.result.TerminalReason == "budget_exhausted" }},
		{"json schema", &pb.RunOptions{JsonSchema: `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`}, "[fm:json]", false,
			func(s seen) bool { return s.result.Structured != nil }},
		{"mcp", &pb.RunOptions{McpServers: []*pb.McpServer{{Name: "echo", Transport: "stdio", Command: mcpProgram(t), Env: map[string]string{mcpEnv: "1"}}}},
			"[fm:mcp=mcp__echo__echo]", false, func(s seen) bool { return strings.Contains(s.text, "echo: ping") }},
		{"no session", &pb.RunOptions{NoSession: true}, "", false,
			func(s seen) bool {
				found, _ := filepath.Glob(filepath.Join(s.run.home, ".claude", "projects", "*", "*.jsonl"))
				return len(found) == 0
			}},
		{"resume", &pb.RunOptions{}, "", true, func(s seen) bool { return s.result.SessionID == s.first && strings.Contains(s.text, "before") }},
		{"continue", &pb.RunOptions{ContinueLast: true}, "", true,
			func(s seen) bool { return s.result.SessionID == s.first && strings.Contains(s.text, "before") }},
		{"fork", &pb.RunOptions{Fork: true}, "", true,
			func(s seen) bool {
				return s.result.SessionID != s.first && s.result.SessionID == s.plan.SessionId && strings.Contains(s.text, "before")
			}},
		{"continue and fork", &pb.RunOptions{ContinueLast: true, Fork: true}, "", true,
			func(s seen) bool { return s.result.SessionID != s.first && strings.Contains(s.text, "before") }},
	}
	var mu sync.Mutex
	planned := map[string]bool{}
	t.Run("cases", func(t *testing.T) {
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				model, home, cwd := newModel(t), t.TempDir(), t.TempDir()
				s := seen{}
				if c.before {
					d := startDirectIn(t, model, home, cwd, nil, claudeArgs...)
					d.prompt("[fm:text] before")
					s.first = d.result().SessionID
					d.end()
					if !c.options.ContinueLast {
						c.options.Resume = s.first
					}
				}
				temp := t.TempDir()
				resp, err := adapter.Plan(t.Context(), &pb.PlanRequest{
					Agent: "claude", Options: c.options, RunId: "01TEST", TempDir: temp, Attempt: 1,
					Caller:    &pb.Caller{Home: home, Cwd: cwd, Os: "linux", Arch: "amd64"},
					SessionId: "aaaaaaaa-0000-4000-8000-0000000000" + string([]byte{'a' + byte(i/10)%6, '0' + byte(i%10)}),
				})
				if err != nil {
					t.Fatal(pluginapi.FromStatus(err))
				}
				s.plan = resp.GetPlan()
				mu.Lock()
				for _, arg := range s.plan.Args {
					name, _, _ := strings.Cut(arg, "=")
					planned[name] = true
				}
				mu.Unlock()
				for _, f := range s.plan.Files {
					if err := os.WriteFile(filepath.Join(temp, f.Name), f.Content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				var env []string
				for name, value := range s.plan.EnvSet {
					env = append(env, name+"="+value)
				}
				s.run = startDirectIn(t, model, home, cwd, env, s.plan.Args...)
				prompt := "[fm:text]"
				if c.prompt != "" {
					prompt = strings.ReplaceAll(c.prompt, "%CWD%", cwd)
				}
				s.run.prompt(prompt)
				s.result = s.run.result()
				s.run.end()
				requests := model.ModelRequests()
				if s.body, err = requests[len(requests)-1].Anthropic(); err != nil {
					t.Fatal(err)
				}
				s.system = strings.Join(s.body.System.Texts(), "\n")
				for _, m := range s.body.Messages {
					for _, b := range m.Content {
						s.text += b.Text + strings.Join(b.Content.Texts(), "\n") + "\n"
					}
				}
				for _, tool := range s.body.Tools {
					s.tools = append(s.tools, tool.Name)
				}
				if s.run.stderr.Len() > 0 {
					t.Errorf("stderr: %s", s.run.stderr.String())
				}
				if c.check != nil && !c.check(s) {
					t.Errorf("no effect of %v\nresult %+v\n%s", s.plan.Args[6:], s.result, shorten(s.run.raw()))
				}
			})
		}
	})
	for _, flag := range sourceFlags(t, filepath.Join(tc.Root, "plugins", "claude", "plan.go")) {
		if !planned[flag] {
			t.Errorf("no case plans %s", flag)
		}
	}
}

var flagPattern = regexp.MustCompile("\"(--[a-z-]+)[=\"]")

// sourceFlags lists the flags that a Go file has as string literals.
func sourceFlags(t *testing.T, path string) []string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for l := range strings.Lines(string(source)) {
		if strings.HasPrefix(strings.TrimSpace(l), "//") {
			continue
		}
		for _, m := range flagPattern.FindAllStringSubmatch(l, -1) {
			flags = append(flags, m[1])
		}
	}
	if len(flags) == 0 {
		t.Fatalf("%s has no flags", path)
	}
	return flags
}
