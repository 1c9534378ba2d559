package run

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// Mode is how the caller and the run talk to each other.
type Mode struct {
	JSON, Quiet, Interactive, Detach bool
	Plain                            bool
	Input                            string
	MonitorParent, MonitorStdin      bool
}

// Session is the agent's conversation that the run belongs to.
type Session struct {
	Resume                    string
	Continue, Fork, NoSession bool
}

// Agent is how the agent works.
type Agent struct {
	Model, Effort, System, SystemMode string
	Schema, Driver                    string
	PTY                               bool
}

// Context is what the agent works with.
type Context struct {
	On, Cwd                  string
	Worktree                 worktreeFlag
	AddDirs, Env, Files, MCP []string
}

// Approvals decide who answers permission requests.
type Approvals struct {
	Approve     string
	Allow, Deny []string
}

// Box is the sandbox that the agent is put into.
type Box struct {
	Sandbox                               sandboxFlag
	SandboxNet, SandboxRead, SandboxWrite []string
	SandboxSecrets                        []string
}

// Limits end the run, or start it again.
type Limits struct {
	MaxTurns                    uint32
	MaxCost                     float64
	MaxTokens                   int64
	Timeout, IdleTimeout, Grace app.DurationFlag
	Retry                       retryFlag
}

// Label names the run and its record.
type Label struct {
	RunID, Name string
	Tags        []string
	NoRecord    bool
	NoChanges   bool
}

// AddFlags adds the flags of a run to a command.
func (o *Options) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.JSON, "json", false, "print every event as one line of JSON")
	f.StringVar(&o.Input, "input", "", "with --json: read prompts and answers from stdin as `ndjson`; with - as PROMPT, the first line is the only prompt")
	f.BoolVar(&o.Quiet, "quiet", false, "print only the assistant's last message")
	f.BoolVarP(&o.Interactive, "interactive", "i", false, "hold a conversation: you type prompts; /help lists the keys and commands, Ctrl-D ends it")
	f.BoolVar(&o.Plain, "plain", false, "with -i: show the agent's text as it is, not as Markdown")
	f.BoolVarP(&o.Detach, "detach", "d", false, "print the run's id and return; the run goes on in amux serve")
	f.StringVarP(&o.Model, "model", "m", "", "`MODEL` to use")
	f.StringVar(&o.Effort, "effort", "", "how hard to think: low, medium, high, max, or the agent's own `WORD`")
	f.StringVar(&o.System, "system", "", "system prompt `TEXT`")
	f.Var(app.OneOf(&o.SystemMode, "append", "replace", "prepend"), "system-mode", "how to use the system prompt: append (default), replace, prepend")
	f.StringVar(&o.Resume, "resume", "", "resume this `SESSION` of the agent")
	f.BoolVar(&o.Continue, "continue", false, "resume the agent's last session in this folder")
	f.BoolVar(&o.Fork, "fork", false, "with --resume or --continue: work on a copy of the session")
	f.BoolVar(&o.NoSession, "no-session", false, "have the agent save no session")
	f.StringVar(&o.On, "on", "", "run the agent at this `PLACE`: one of config.toml, ssh:HOST, docker:IMAGE, kubernetes:IMAGE")
	f.StringVar(&o.Cwd, "cwd", "", "`FOLDER` to work in (default: the current one)")
	f.Var(&o.Worktree, "worktree", "work in a git worktree of its own, on branch amux/`NAME`: see amux worktree; without a name a new one")
	f.Lookup("worktree").NoOptDefVal = newWorktree
	app.AddRepeated(f, &o.AddDirs, "add-dir", "", "another `FOLDER` to work in (repeatable)")
	app.AddRepeated(f, &o.Env, "env", "e", "environment variable for the agent, as `NAME=VALUE` (repeatable)")
	app.AddRepeated(f, &o.Files, "file", "", "attach a `FILE` (repeatable)")
	app.AddRepeated(f, &o.MCP, "mcp", "", "tool server: `NAME=COMMAND ARGS…`, NAME=https://…, or a JSON file with mcpServers (repeatable)")
	f.StringVar(&o.Schema, "json-schema", "", "require an answer that matches this JSON schema, given as `TEXT or FILE`")
	f.Var(app.OneOf(&o.Approve, "ask", "auto", "deny", "rules"), "approve", "who answers permission requests: ask (you), auto (yes), deny (no), rules")
	app.AddRepeated(f, &o.Allow, "allow", "", "approve what this `RULE` names, such as Bash(go test *) or Edit(src/*) (repeatable)")
	app.AddRepeated(f, &o.Deny, "deny", "", "deny what this `RULE` names (repeatable)")
	f.Var(&o.Sandbox, "sandbox", "keep the agent in a sandbox: it writes to its work folder, and sees no more of your home")
	f.Lookup("sandbox").NoOptDefVal = "true"
	app.AddRepeated(f, &o.SandboxNet, "sandbox-net", "", "let it reach this `HOST` and no other (repeatable); none: nobody; all (default)")
	app.AddRepeated(f, &o.SandboxRead, "sandbox-read", "", "let it read this `PATH`, too (repeatable)")
	app.AddRepeated(f, &o.SandboxWrite, "sandbox-write", "", "let it write this `PATH`, too (repeatable)")
	app.AddRepeated(f, &o.SandboxSecrets, "sandbox-secret", "", "keep the value of a variable out of it, and put it into requests to a host: `NAME=HOST` (repeatable)")
	f.Uint32Var(&o.MaxTurns, "max-turns", 0, "stop after this `NUMBER` of turns")
	f.Float64Var(&o.MaxCost, "max-cost", 0, "stop when this many `DOLLARS` are spent, as far as the agent says")
	app.Also(cmd, "max-cost", "max-budget")
	f.Int64Var(&o.MaxTokens, "max-tokens", 0, "stop when this `NUMBER` of tokens is read and written, those of the cache too")
	f.Var(&o.Timeout, "timeout", "end the run after this time")
	f.Var(&o.IdleTimeout, "idle-timeout", "end the run after this long without output; 0s: never")
	f.BoolVar(&o.MonitorParent, "monitor-parent", false, "end the run when the process that started this amux ends")
	f.BoolVar(&o.MonitorStdin, "monitor-stdin", false, "with --input: end the run when stdin ends")
	f.Var(&o.Retry, "retry", "retry after a rate limit, overload, network failure or crash: `ATTEMPTS` in all, 3 if no number is given")
	f.Lookup("retry").NoOptDefVal = "3"
	f.Var(&o.Grace, "grace", "time between TERM and KILL (default 5s)")
	f.StringVar(&o.Config.Profile, "profile", "", "use the settings of [profiles.`NAME`] in config.toml; none: of no profile")
	f.StringVar(&o.Name, "name", "", "`NAME` for the run")
	f.StringVar(&o.RunID, "run-id", "", "`ULID` for the run")
	app.AddRepeated(f, &o.Tags, "tag", "", "`TAG` for the run (repeatable)")
	f.BoolVar(&o.PTY, "pty", false, "run the agent on a terminal: see amux attach, amux screen, amux send --keys")
	f.StringVar(&o.Driver, "driver", "", "`DRIVER` to use, where an agent has several")
	f.BoolVar(&o.NoChanges, "no-changes", false, "do not record what the run changes: see amux diff")
	f.BoolVar(&o.NoRecord, "no-record", false, "delete the run's record when it ends")
}

// check refuses flags that cannot be combined.
func (o *Options) check() error {
	session := o.Resume != "" || o.Continue
	switch {
	case o.Input != "" && o.Input != "ndjson":
		return app.Usagef("invalid --input %q: expected ndjson", o.Input)
	case o.Input != "" && !o.JSON:
		return app.Usagef("--input ndjson requires --json").WithHint("add --json")
	case o.MonitorStdin && o.Input == "":
		return app.Usagef("--monitor-stdin requires --input ndjson").WithHint("add --json --input ndjson")
	case o.JSON && o.Quiet:
		return app.Usagef("--json cannot be combined with --quiet")
	case o.Detach && (o.JSON || o.Quiet || o.Input != ""):
		return app.Usagef("--detach prints the run's id, so it cannot be combined with --json, --quiet or --input").
			WithHint("afterwards: amux logs -f --json RUN, amux wait RUN")
	case o.Interactive && (o.JSON || o.Quiet || o.Input != ""):
		return app.Usagef("--interactive is for people, so it cannot be combined with --json, --quiet or --input").
			WithHint("for programs: --json --input ndjson")
	case o.Resume != "" && o.Continue:
		return app.Usagef("--resume cannot be combined with --continue")
	case o.Fork && !session:
		return app.Usagef("--fork requires a session").WithHint("add --resume SESSION or --continue")
	case o.NoSession && (session || o.Fork):
		return app.Usagef("--no-session cannot be combined with --resume, --continue or --fork")
	case o.SystemMode != "" && o.System == "":
		return app.Usagef("--system-mode requires --system")
	case o.Approve == "rules" && len(o.Allow)+len(o.Deny) == 0:
		return app.Usagef("--approve rules requires a rule").WithHint("add --allow RULE or --deny RULE")
	case o.Retry.attempts > 0 && (o.Interactive || o.Input != ""):
		return app.Usagef("--retry is for runs of one prompt, so it cannot be combined with --interactive or --input")
	case o.MaxCost < 0, math.IsNaN(o.MaxCost), math.IsInf(o.MaxCost, 0):
		return app.Usagef("invalid --max-cost \"%v\": expected dollars, 0 or more", o.MaxCost)
	case o.MaxTokens < 0:
		return app.Usagef("invalid --max-tokens \"%d\": expected a number, 0 or more", o.MaxTokens)
	}
	return nil
}

// spec makes the part of the RunSpec that the flags set.
func (o *Options) spec() (host.RunSpec, error) {
	spec := host.RunSpec{
		RunID: o.RunID, Name: o.Name, Driver: o.Driver, PTY: o.PTY, Tags: o.Tags, NoRecord: o.NoRecord,
		ModelOptions: host.ModelOptions{Model: o.Model, Effort: o.Effort, SystemPrompt: o.System, SystemMode: o.SystemMode},
		AgentSession: host.AgentSession{Resume: o.Resume, Continue: o.Continue, Fork: o.Fork, NoSession: o.NoSession},
		Workspace:    host.Workspace{Cwd: o.Process.Cwd},
		Limits: host.Limits{
			MaxTurns: int(o.MaxTurns), MaxCost: o.MaxCost, MaxTokens: o.MaxTokens, Timeout: o.Timeout.D, IdleTimeout: o.IdleTimeout.D, Grace: o.Grace.D,
		},
		Permissions: host.Permissions{AllowRules: o.Allow, DenyRules: o.Deny},
	}
	if n := o.Retry.attempts; n > 0 {
		spec.Retry = &host.Retry{MaxAttempts: int(min(n, math.MaxInt32))}
	}
	if o.MonitorParent {
		start, alive := process.Start(os.Getppid())
		if !alive {
			return spec, app.Usagef("--monitor-parent: the process that started this amux has already ended")
		}
		spec.Parent = &host.Parent{PID: os.Getppid(), Start: start}
	}
	if o.On != "" {
		spec.On, spec.Cwd, spec.AddDirs = o.On, o.Cwd, o.AddDirs
	} else if err := o.folders(&spec); err != nil {
		return spec, err
	}
	if o.Worktree.given {
		spec.Worktree = &host.WorktreeSpec{Name: o.Worktree.name}
	}
	if o.IdleTimeout.Given && o.IdleTimeout.D == 0 {
		spec.IdleTimeout = -1
	}
	if o.Sandbox.on || len(o.SandboxNet)+len(o.SandboxRead)+len(o.SandboxWrite)+len(o.SandboxSecrets) > 0 {
		spec.Sandbox = &host.Sandbox{Network: o.SandboxNet, Secrets: o.SandboxSecrets}
		for _, path := range o.SandboxRead {
			spec.Sandbox.Read = append(spec.Sandbox.Read, o.Process.Abs(path))
		}
		for _, path := range o.SandboxWrite {
			spec.Sandbox.Write = append(spec.Sandbox.Write, o.Process.Abs(path))
		}
	}
	for _, file := range o.Files {
		path := o.Process.Abs(file)
		f, err := foreign.Open(path, foreign.Rule{})
		if err != nil {
			return spec, fileError("--file", file, err)
		}
		f.Close()
		spec.Files = append(spec.Files, path)
	}
	for _, variable := range o.Env {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || name == "" {
			// The value may be a secret, so the text is not repeated.
			return spec, app.Usagef("invalid --env: expected NAME=VALUE").WithHint("for example: --env CI=1")
		}
		if spec.Env == nil {
			spec.Env = map[string]string{}
		}
		spec.Env[name] = value
	}
	spec.MCPServers = slices.Clone(o.servers)
	for _, text := range o.MCP {
		servers, err := mcpServers(o.Process, text)
		if err != nil {
			return spec, err
		}
		spec.MCPServers = append(spec.MCPServers, servers...)
	}
	if o.Schema != "" {
		spec.JSONSchema = o.Schema
		if !strings.HasPrefix(strings.TrimSpace(o.Schema), "{") {
			data, err := foreign.Read(o.Process.Abs(o.Schema), foreign.Rule{Limit: app.MaxConfigFile})
			if errors.Is(err, fs.ErrNotExist) {
				return spec, app.Usagef("invalid --json-schema %.200q: neither a JSON object nor an existing file", o.Schema)
			}
			if err != nil {
				return spec, fileError("--json-schema", o.Schema, err)
			}
			spec.JSONSchema = string(data)
		}
	}
	return spec, nil
}

// folders takes the work folder, and others that the agent may use.
func (o *Options) folders(spec *host.RunSpec) error {
	if o.Cwd != "" {
		spec.Cwd = o.Process.Abs(o.Cwd)
	}
	for _, dir := range o.AddDirs {
		spec.AddDirs = append(spec.AddDirs, o.Process.Abs(dir))
	}
	return checkCwd(spec.Cwd, o.Cwd)
}

// checkCwd refuses a folder that an agent cannot work in. flag is the value of --cwd;
// dir is not absolute if the current folder was removed.
func checkCwd(dir, flag string) error {
	if !filepath.IsAbs(dir) {
		return app.Usagef("the current folder was removed").
			WithHint("change to another folder, or name one with --cwd and its whole path")
	}
	info, err := os.Stat(dir)
	name := "folder " + dir
	if flag != "" {
		name = fmt.Sprintf("invalid --cwd %q: it", flag)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return app.Usagef("%s does not exist", name).WithHint("create it, or name another folder with --cwd")
	case err != nil:
		return app.Usagef("%s cannot be used: %v", name, errors.Unwrap(err)).WithHint("name another folder with --cwd")
	case !info.IsDir():
		return app.Usagef("%s is not a folder", name).WithHint("name a folder with --cwd")
	}
	return nil
}

// fileError says why a file that a flag names cannot be used.
func fileError(flag, file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return app.Usagef("invalid %s %q: no such file", flag, file)
	}
	return app.Usagef("invalid %s %q: %v", flag, file, fault.Plain(err)).WithHint("%s", foreign.Fix(err))
}

// worktreeFlag is the value of --worktree.
type worktreeFlag struct {
	name  string // "": a new one
	given bool
}

// newWorktree is the value of --worktree without a name, which no worktree can have.
const newWorktree = "-"

func (v *worktreeFlag) String() string { return "" }

func (v *worktreeFlag) Type() string { return "string" }

func (v *worktreeFlag) Set(text string) error {
	if text == "" {
		return errors.New("expected a name")
	}
	*v = worktreeFlag{name: strings.TrimPrefix(text, newWorktree), given: true}
	return nil
}

// retryFlag is the value of --retry.
type retryFlag struct {
	attempts uint32
	given    bool
}

func (v *retryFlag) String() string { return "" }

func (v *retryFlag) Type() string { return "uint32" }

func (v *retryFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 0, 32)
	v.attempts, v.given = uint32(n), err == nil
	return err
}

// sandboxFlag is --sandbox, or --sandbox=false against [sandbox] always.
type sandboxFlag struct{ on, off bool }

func (s *sandboxFlag) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("expected true or false")
	}
	s.on, s.off = on, !on
	return nil
}

func (s *sandboxFlag) String() string { return "" }

func (s *sandboxFlag) Type() string { return "bool" }
