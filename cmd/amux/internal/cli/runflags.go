package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/schema"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// runOptions are the flags of run.
type runOptions struct {
	json, quiet, detach, interactive, monitorParent, monitorStdin, cont, fork, noSession, noRecord, pty bool

	input, driver, runID, name, model, effort, system, systemMode, resume, cwd, schema, approve string

	addDirs, env, files, mcp, allow, deny, tags []string

	maxTurns                    uint32
	maxBudget                   float64
	timeout, idleTimeout, grace durationValue
	retry                       uint32
	retrySet                    bool

	commands *commands // of --input
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.json, "json", false, "print every event as one line of JSON")
	f.StringVar(&o.input, "input", "", "with --json: read prompts and answers from stdin as `ndjson`; where PROMPT is -, its first line is the only prompt")
	f.BoolVar(&o.quiet, "quiet", false, "print the assistant's last message and nothing else")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "a conversation: each line is a prompt; Ctrl-D ends it")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the run's id and return; the run goes on in amux serve")
	f.StringVar(&o.model, "model", "", "model")
	f.StringVar(&o.effort, "effort", "", "how hard to think: low, medium, high, max, or the agent's own `word`")
	f.StringVar(&o.system, "system", "", "system prompt")
	f.Var(oneOf(&o.systemMode, "append", "replace", "prepend"), "system-mode", "what to do with it: append (default), replace, prepend")
	f.StringVar(&o.resume, "resume", "", "go on with this `session` of the agent")
	f.BoolVar(&o.cont, "continue", false, "go on with the agent's last session here")
	f.BoolVar(&o.fork, "fork", false, "with --resume or --continue: into a new session")
	f.BoolVar(&o.noSession, "no-session", false, "have the agent keep no session")
	f.StringVar(&o.cwd, "cwd", "", "`folder` to work in (default: this one)")
	f.StringArrayVar(&o.addDirs, "add-dir", nil, "a further `folder` to work in")
	f.StringArrayVar(&o.env, "env", nil, "a variable for the agent, as `NAME=VALUE`")
	f.StringArrayVar(&o.files, "file", nil, "attach a `file`")
	f.StringArrayVar(&o.mcp, "mcp", nil, "a tool server: `NAME=COMMAND ARGS…`, NAME=https://…, or a JSON file with mcpServers")
	f.StringVar(&o.schema, "json-schema", "", "require an answer that matches this JSON schema, given as `text or file`")
	f.Var(oneOf(&o.approve, "ask", "auto", "deny", "rules"), "approve", "who answers permission requests: ask (you), auto (yes), deny (no), rules")
	f.StringArrayVar(&o.allow, "allow", nil, "approve what this `rule` names, as Bash(go test *) or Edit(src/*); repeatable")
	f.StringArrayVar(&o.deny, "deny", nil, "deny what this `rule` names; repeatable")
	f.Uint32Var(&o.maxTurns, "max-turns", 0, "stop after this `number` of turns")
	f.Float64Var(&o.maxBudget, "max-budget", 0, "stop when this many `dollars` are spent")
	f.Var(&o.timeout, "timeout", "end the run after this time")
	f.Var(&o.idleTimeout, "idle-timeout", "end the run when the agent is silent for this long; 0s: never")
	f.BoolVar(&o.monitorParent, "monitor-parent", false, "end the run when the process that started this amux has ended")
	f.BoolVar(&o.monitorStdin, "monitor-stdin", false, "with --input: end the run when stdin ends")
	f.Uint32Var(&o.retry, "retry", 0, "start the agent again when it fails by a rate limit, overload, the network or a crash: `attempts` in all, 3 if no number is given")
	f.Lookup("retry").NoOptDefVal = "3"
	f.Var(&o.grace, "grace", "time between asking processes to end and killing them (default 5s)")
	f.StringVar(&o.name, "name", "", "a name for the run")
	f.StringVar(&o.runID, "run-id", "", "a `ULID` for the run")
	f.StringArrayVar(&o.tags, "tag", nil, "a tag for the run")
	f.BoolVar(&o.pty, "pty", false, "run the agent on a terminal: see amux attach, amux screen, amux send --keys")
	f.StringVar(&o.driver, "driver", "", "which way to drive the agent, where there are several")

	f.BoolVar(&o.noRecord, "no-record", false, "keep no record of the run")
}

// check finds flags that do not go together.
func (o *runOptions) check() error {
	switch {
	case o.input != "" && o.input != "ndjson":
		return usage("--input %s: want ndjson", o.input)
	case o.input != "" && !o.json:
		return usage("--input ndjson goes with --json").WithHint("add --json")
	case o.monitorStdin && o.input == "":
		return usage("--monitor-stdin goes with --input ndjson").WithHint("add --json --input ndjson")
	case o.json && o.quiet:
		return usage("--json and --quiet exclude each other")
	case o.detach && (o.json || o.quiet || o.input != ""):
		return usage("--detach prints the run's id, so it excludes --json, --quiet and --input").
			WithHint("afterwards: amux logs -f --json RUN, amux wait RUN")
	case o.interactive && (o.json || o.quiet || o.input != ""):
		return usage("--interactive is for people, so it excludes --json, --quiet and --input").
			WithHint("a program talks by --json --input ndjson")
	case o.resume != "" && o.cont:
		return usage("--resume and --continue exclude each other")
	case o.fork && o.resume == "" && !o.cont:
		return usage("--fork needs a session").WithHint("add --resume SESSION or --continue")
	case o.noSession && (o.resume != "" || o.cont || o.fork):
		return usage("--no-session excludes --resume, --continue and --fork")
	case o.systemMode != "" && o.system == "":
		return usage("--system-mode needs --system")
	case o.approve == "rules" && len(o.allow)+len(o.deny) == 0:
		return usage("--approve rules needs a rule").WithHint("add --allow RULE or --deny RULE")
	case o.interactive && o.retry > 0 || o.input != "" && o.retry > 0:
		return usage("--retry is for runs of one prompt, so it excludes --interactive and --input")
	case o.maxBudget < 0, math.IsNaN(o.maxBudget), math.IsInf(o.maxBudget, 0):
		return usage("--max-budget %v: want dollars, not less than 0", o.maxBudget)
	}
	return nil
}

// spec makes the part of the RunSpec that the flags say.
func (o *runOptions) spec(s *session) (host.RunSpec, error) {
	spec := host.RunSpec{
		RunID: o.runID, Name: o.name, Model: o.model, Effort: o.effort,
		SystemPrompt: o.system, SystemMode: o.systemMode,
		Resume: o.resume, Continue: o.cont, Fork: o.fork, NoSession: o.noSession,
		Cwd: s.app.Cwd, Driver: o.driver, PTY: o.pty, Tags: o.tags,
		MaxTurns: int(o.maxTurns), MaxBudget: o.maxBudget, AllowRules: o.allow, DenyRules: o.deny,
		Timeout: o.timeout.d, IdleTimeout: o.idleTimeout.d, Grace: o.grace.d, NoRecord: o.noRecord,
	}
	if o.retry > 0 {
		spec.Retry = &host.Retry{MaxAttempts: int(min(o.retry, math.MaxInt32))}
	}
	if o.monitorParent {
		start, alive := process.Start(os.Getppid())
		if !alive {
			return spec, usage("--monitor-parent: the process that started this amux has ended already")
		}
		spec.Parent = &host.Parent{PID: os.Getppid(), Start: start}
	}
	if o.cwd != "" {
		spec.Cwd = s.abs(o.cwd)
	}
	if err := checkCwd(spec.Cwd, o.cwd); err != nil {
		return spec, err
	}
	if o.idleTimeout.set && o.idleTimeout.d == 0 {
		spec.IdleTimeout = -1
	}
	for _, dir := range o.addDirs {
		spec.AddDirs = append(spec.AddDirs, s.abs(dir))
	}
	for _, file := range o.files {
		path := s.abs(file)
		f, err := foreign.Open(path, foreign.Rule{})
		if err != nil {
			return spec, fileError("--file", file, err)
		}
		f.Close()
		spec.Files = append(spec.Files, path)
	}
	for _, variable := range o.env {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || name == "" {
			// The value may be a secret, so the text is not repeated.
			return spec, usage("--env: want NAME=VALUE").WithHint("for example: --env CI=1")
		}
		if spec.Env == nil {
			spec.Env = map[string]string{}
		}
		spec.Env[name] = value
	}
	for _, text := range o.mcp {
		servers, err := s.mcpServers(text)
		if err != nil {
			return spec, err
		}
		spec.MCPServers = append(spec.MCPServers, servers...)
	}
	if o.schema != "" {
		spec.JSONSchema = o.schema
		name := ""
		if !strings.HasPrefix(strings.TrimSpace(o.schema), "{") {
			data, err := foreign.Read(s.abs(o.schema), foreign.Rule{Limit: maxConfigFile})
			if errors.Is(err, fs.ErrNotExist) {
				return spec, usage("--json-schema %.200s: neither a JSON object nor a file that exists", o.schema)
			}
			if err != nil {
				return spec, fileError("--json-schema", o.schema, err)
			}
			name, spec.JSONSchema = fmt.Sprintf(" %.200s", o.schema), string(data)
		}
		if err := schema.Validate(spec.JSONSchema); err != nil {
			return spec, usage("--json-schema%s: %w", name, err)
		}
	}
	return spec, nil
}

// checkCwd refuses a folder that an agent cannot work in. flag is how --cwd named it;
// dir is not absolute if the folder that amux was started in is gone.
func checkCwd(dir, flag string) error {
	if !filepath.IsAbs(dir) {
		return usage("the folder that amux was started in does not exist any more").
			WithHint("change to another one, or name one by --cwd with its whole path")
	}
	info, err := os.Stat(dir)
	name := "the folder " + dir
	if flag != "" {
		name = "--cwd " + flag + ": it"
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usage("%s does not exist", name).WithHint("make it, or name another one by --cwd")
	case err != nil:
		return usage("%s cannot be used: %v", name, errors.Unwrap(err)).WithHint("name another one by --cwd")
	case !info.IsDir():
		return usage("%s is not a folder", name).WithHint("name a folder by --cwd")
	}
	return nil
}

// maxConfigFile bounds a file of settings that a flag names.
const maxConfigFile = 4 << 20

// mcpServers reads one --mcp flag.
func (s *session) mcpServers(text string) ([]host.MCPServer, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return s.mcpFile(text)
	}
	rest = strings.TrimSpace(rest)
	if u, err := url.Parse(rest); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return []host.MCPServer{{Name: name, Transport: "http", URL: rest}}, nil
	}
	words, err := splitWords(rest)
	if err != nil || name == "" || len(words) == 0 {
		return nil, usage("--mcp %s: want NAME=COMMAND ARGS…, NAME=https://… or a JSON file", text)
	}
	return []host.MCPServer{{Name: name, Transport: "stdio", Command: words[0], Args: words[1:]}}, nil
}

// mcpFile reads the file format that agents share: {"mcpServers": {name: …}}.
func (s *session) mcpFile(path string) ([]host.MCPServer, error) {
	data, err := foreign.Read(s.abs(path), foreign.Rule{Limit: maxConfigFile})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("--mcp %s: there is no such file", path).WithHint("or give a server as NAME=COMMAND ARGS…")
	}
	if err != nil {
		return nil, fileError("--mcp", path, err)
	}
	var file struct {
		Servers map[string]struct {
			Type      string            `json:"type"`
			Transport string            `json:"transport"`
			Command   string            `json:"command"`
			Args      []string          `json:"args"`
			Env       map[string]string `json:"env"`
			URL       string            `json:"url"`
			Headers   map[string]string `json:"headers"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, usage("--mcp %s: %v", path, err)
	}
	if len(file.Servers) == 0 {
		return nil, usage("--mcp %s: it has no mcpServers", path)
	}
	var servers []host.MCPServer
	for name, server := range file.Servers {
		transport := server.Type
		if transport == "" {
			transport = server.Transport
		}
		switch {
		case transport == "" && server.URL != "", transport == "streamable-http":
			transport = "http"
		case transport == "":
			transport = "stdio"
		}
		servers = append(servers, host.MCPServer{Name: name, Transport: transport, Command: server.Command,
			Args: server.Args, Env: server.Env, URL: server.URL, Headers: server.Headers})
	}
	slices.SortFunc(servers, func(a, b host.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return servers, nil
}

// fileError says why a file that a flag names cannot be used.
func fileError(flag, file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usage("%s %s: there is no such file", flag, file)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return usage("%s %s: %v", flag, file, err).WithHint("%s", foreign.Fix(err))
}

// splitWords splits a command into words; quotes keep words together.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	quote := rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// oneOfValue is a flag that takes one of several words.
type oneOfValue struct {
	to     *string
	values []string
}

func oneOf(to *string, values ...string) *oneOfValue { return &oneOfValue{to, values} }

func (v *oneOfValue) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

func (v *oneOfValue) Type() string { return "word" }

func (v *oneOfValue) Set(text string) error {
	if !slices.Contains(v.values, text) {
		return fmt.Errorf("want one of %s", strings.Join(v.values, ", "))
	}
	*v.to = text
	return nil
}

// durationValue is a flag that takes a duration.
type durationValue struct {
	d   time.Duration
	set bool
}

func (v *durationValue) String() string { return "" }

func (v *durationValue) Type() string { return "duration" }

func (v *durationValue) Set(text string) (err error) {
	v.d, err = settings.ParseDuration(text)
	v.set = err == nil
	return err
}
