package host

import (
	"mime"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/internal/policy"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/rule"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// options is the spec in the protocol's words. Attachments come without content.
func (s *RunSpec) options(agent *pluginapi.Agent) *pb.RunOptions {
	o := &pb.RunOptions{
		Prompt: s.Prompt, SystemPrompt: s.SystemPrompt, SystemPromptMode: s.SystemMode,
		Model: s.Model, Effort: s.Effort, Resume: s.Resume, ContinueLast: s.Continue, Fork: s.Fork,
		NoSession: s.NoSession, AddDirs: s.AddDirs, JsonSchema: s.JSONSchema,
		AllowRules: s.AllowRules, DenyRules: s.DenyRules,
		MaxTurns: uint32(s.MaxTurns), MaxBudgetUsd: s.agentBudget(agent), Driver: s.Driver, Pty: s.PTY,
		Conversation: s.Conversation,
		Approve: map[ApproveMode]pb.Approve{
			ApproveAsk: pb.Approve_APPROVE_ASK, ApproveAuto: pb.Approve_APPROVE_AUTO,
			ApproveDeny: pb.Approve_APPROVE_DENY, ApproveRules: pb.Approve_APPROVE_RULES,
		}[s.Approve],
	}
	if o.Driver == "" && len(agent.GetDrivers()) > 0 {
		o.Driver = agent.Drivers[0]
	}
	for _, path := range s.Files {
		o.Attachments = append(o.Attachments, &pb.Attachment{
			Path: path, Name: filepath.Base(path), MimeType: mimeType(path),
		})
	}
	for _, m := range s.MCPServers {
		o.McpServers = append(o.McpServers, &pb.McpServer{
			Name: m.Name, Transport: m.Transport, Command: m.Command, Args: m.Args, Env: m.Env, Url: m.URL, Headers: m.Headers,
		})
	}
	return o
}

// recorded is the part of options that the adapter gets when it converses: what
// a replay has as well.
func (s *RunSpec) recorded(agent *pluginapi.Agent) *pb.RunOptions {
	o := s.options(agent)
	for _, m := range o.McpServers {
		m.Env, m.Headers = nil, nil
	}
	return o
}

func mimeType(path string) string {
	t, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(filepath.Ext(path))), ";")
	return t
}

// loadAttachments reads the files that the spec names.
func loadAttachments(list []*pb.Attachment) error {
	for _, a := range list {
		data, err := foreign.Read(a.Path, foreign.Rule{Limit: maxAttachments})
		if err != nil {
			return invalid("file %s: %w", a.Path, fault.Plain(err))
		}
		a.Content = data
	}
	return nil
}

// caller is what an adapter may see of the user's world.
func caller(agent *pluginapi.Agent, env []string, cwd string, extra map[string]string) *pb.Caller {
	c := &pb.Caller{
		Env: map[string]string{}, Cwd: cwd, Os: runtime.GOOS, Arch: runtime.GOARCH,
	}
	patterns := slices.Concat(callerEnv, agent.GetCallerEnv())
	see := func(name, value string) {
		if slices.ContainsFunc(patterns, func(pattern string) bool { return rule.Glob(pattern, name) }) {
			c.Env[name] = value
		}
	}
	for _, variable := range env {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" {
			see(name, value)
		}
	}
	for name, value := range extra {
		see(process.EnvName(name), value)
	}
	c.Home = c.Env["HOME"]
	if c.Home == "" {
		c.Home = c.Env["USERPROFILE"]
	}
	return c
}

// callerEnv is what every adapter sees, as the proto says of Agent.caller_env.
var callerEnv = []string{
	"HOME", "PATH", "USER", "LANG", "LC_*", "XDG_*", "TMPDIR", "TMP", "TEMP",
	"USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "SYSTEMROOT",
}

// adapter is the agent that the plugin knows: for one of the user's own, that whose
// adapter drives it.
func (s *RunSpec) adapter() string {
	if s.Launch != nil {
		return s.Launch.Adapter
	}
	return s.Agent
}

func (l *Launch) proto() *pluginapi.Launch {
	if l == nil {
		return nil
	}
	return &pluginapi.Launch{Line: l.Line, Argv: l.Argv}
}

func configError(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodeConfig, format, args...).WithHint("see [agents.NAME] in config.toml")
}

func (s *RunSpec) retry() *policy.Retry { return (*policy.Retry)(s.Retry) }

// judge answers what the run's agent asks; env is the host's.
func (s *RunSpec) judge(env []string) policy.Judge {
	return policy.Judge{Mode: string(s.Approve), Allow: s.AllowRules, Deny: s.DenyRules, Cwd: s.Cwd, Env: env, Elsewhere: s.On != ""}
}
