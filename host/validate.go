package host

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/internal/policy"
	"github.com/amux-dev/amux/internal/schema"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

var (
	nameRule    = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)
	varNameRule = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	mcpNameRule = pattern.New(`^[a-zA-Z0-9_-]{1,64}$`)
)

func invalid(format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeValidation, format, args...)
}

// validate checks what can be checked without knowing the agent, and makes paths
// absolute.
func (s *RunSpec) validate() error {
	if s.RunID != "" && !archive.IsID(s.RunID) {
		return invalid("run id %q is not a ULID", s.RunID).WithHint("26 characters, like 01ARYZ6S41TSV4RRFFQ69G5FAV; or leave it out")
	}
	if s.Name != "" && !nameRule.MatchString(s.Name) {
		return invalid("run name %q has other characters than letters, digits, . _ and -", s.Name)
	}
	if s.Prompt == "" && !s.Conversation {
		return invalid("there is no prompt").WithHint("give it as an argument, or on stdin")
	}
	if err := checkPrompt(s.Prompt); err != nil {
		return err
	}
	s.Approve = cmp.Or(s.Approve, ApproveDeny)
	if err := s.Approve.check(); err != nil {
		return err
	}
	if err := policy.CheckRules(s.AllowRules, s.DenyRules); err != nil {
		return err
	}
	if s.Approve == ApproveRules && len(s.AllowRules)+len(s.DenyRules) == 0 {
		return invalid("approve mode rules without a rule").WithHint("add --allow RULE or --deny RULE")
	}
	switch s.SystemMode {
	case "":
		if s.SystemPrompt != "" {
			s.SystemMode = "append"
		}
	case "append", "replace", "prepend":
		if s.SystemPrompt == "" {
			return invalid("system prompt mode %s without a system prompt", s.SystemMode)
		}
	default:
		return invalid("system prompt mode %q is not one of append, replace, prepend", s.SystemMode)
	}
	if s.Resume != "" && s.Continue {
		return invalid("resume and continue exclude each other")
	}
	if s.NoSession && (s.Resume != "" || s.Continue || s.Fork) {
		return invalid("no session excludes resume, continue and fork")
	}
	if s.Fork && s.Resume == "" && !s.Continue {
		return invalid("fork needs a session").WithHint("add --resume SESSION or --continue")
	}
	switch s.Sync {
	case "", SyncEnd, SyncAlways, SyncOff:
	default:
		return invalid("sync %q is not end, always or off", s.Sync)
	}
	if err := s.validateBudgets(); err != nil {
		return err
	}
	if s.MaxTurns < 0 || s.MaxBudget < 0 || s.Timeout < 0 || s.Grace < 0 {
		return invalid("max turns, max budget, timeout and grace cannot be negative")
	}
	if err := s.retry().Validate(s.Conversation); err != nil {
		return err
	}
	for name, value := range s.Env {
		if !varNameRule.MatchString(name) {
			return invalid("%q is no name for a variable", name)
		}
		if strings.ContainsRune(value, 0) {
			return invalid("the variable %s has a NUL byte", name)
		}
	}
	if err := s.resolvePaths(); err != nil {
		return err
	}
	return s.validateMCP()
}

func (s *RunSpec) resolvePaths() error {
	given := s.Cwd
	if s.On != "" {
		given = "" // Cwd and AddDirs are elsewhere
	}
	cwd, err := filepath.Abs(cmp.Or(given, "."))
	if err != nil {
		return invalid("working directory %s: %w", given, err)
	}
	if s.On == "" {
		s.Cwd = cwd
		if err := checkDir("working directory", s.Cwd); err != nil {
			return err
		}
	}
	abs := func(list []string) []string {
		var out []string
		for _, p := range list {
			if !filepath.IsAbs(p) {
				p = filepath.Join(cwd, p)
			}
			out = append(out, p)
		}
		return out
	}
	s.Files = abs(s.Files)
	if s.On == "" {
		s.AddDirs = abs(s.AddDirs)
		for _, dir := range s.AddDirs {
			if err := checkDir("directory", dir); err != nil {
				return err
			}
		}
	}
	total := 0
	for _, file := range s.Files {
		info, err := os.Stat(file)
		if err != nil {
			return invalid("file %s: %w", file, fault.Plain(err))
		}
		if !info.Mode().IsRegular() {
			return invalid("file %s is not a regular file", file)
		}
		const way = "put it into the working directory and name it in the prompt"
		if info.Size() > maxAttachments {
			return invalid("file %s is larger than %d MiB", file, maxAttachments>>20).WithHint(way)
		}
		if total += int(info.Size()); total > maxAttachments {
			return invalid("file %s is too much: all attached files may have %d MiB together", file, maxAttachments>>20).WithHint(way)
		}
		if base64.StdEncoding.EncodedLen(total)+quotedLen(s.Prompt) > maxQuoted {
			return invalid("file %s is too much beside a prompt of this length", file).WithHint(way)
		}
	}
	return nil
}

const (
	// maxAttachments is for all files: they reach the agent through its stdin, in
	// base64.
	maxAttachments = 10 << 20
	maxPrompt      = MaxPrompt
	// maxQuoted is the longest prompt as a JSON string, which is how it is recorded
	// and how most agents are told. It leaves room for what an adapter wraps around
	// it in the queue in front of the agent's stdin.
	maxQuoted = shim.StdinLimit - 1<<20
	// maxInput is the longest record of an input: a prompt of characters that are
	// recorded in twice as many bytes, and room for the rest of it.
	maxInput = 2*maxPrompt + 1<<20
)

// MaxPrompt is the longest prompt in bytes.
const MaxPrompt = shim.StdinLimit / 2

// checkPrompt refuses what could not reach the agent as it is.
func checkPrompt(prompt string) error {
	const way = "put the long text into a file and name it"
	if len(prompt) > maxPrompt {
		return invalid("the prompt is longer than %d MiB", maxPrompt>>20).WithHint(way)
	}
	if !utf8.ValidString(prompt) {
		return invalid("the prompt is not valid UTF-8").WithHint("convert it, for example: iconv -f latin1 -t utf-8")
	}
	if strings.IndexByte(prompt, 0) >= 0 {
		return invalid("the prompt has a NUL byte")
	}
	if quotedLen(prompt) > maxQuoted {
		return invalid("the prompt is longer than %d MiB when its control characters and quotes are escaped", maxQuoted>>20).WithHint(way)
	}
	return nil
}

// quotedLen is the length of a text as a JSON string.
func quotedLen(text string) int {
	quoted := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			quoted++
		case c < ' ':
			quoted += len(`\u0000`) - 1
		}
	}
	return quoted
}

func checkDir(what, dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return invalid("the %s %s does not exist", what, dir)
	}
	if err != nil {
		return invalid("%s %s: %w", what, dir, fault.Plain(err))
	}
	if !info.IsDir() {
		return invalid("%s %s is a file", what, dir)
	}
	return nil
}

func (s *RunSpec) validateMCP() error {
	seen := map[string]bool{}
	for _, m := range s.MCPServers {
		switch {
		case !mcpNameRule.MatchString(m.Name):
			return invalid("MCP server name %q has other characters than letters, digits, _ and -", m.Name)
		case seen[m.Name]:
			return invalid("two MCP servers have the name %s", m.Name)
		case m.Transport == "stdio" && m.Command == "":
			return invalid("MCP server %s has no command", m.Name)
		case (m.Transport == "sse" || m.Transport == "http") && m.URL == "":
			return invalid("MCP server %s has no URL", m.Name)
		case m.Transport != "stdio" && m.Transport != "sse" && m.Transport != "http":
			return invalid("MCP server %s: transport %q is not one of stdio, sse, http", m.Name, m.Transport)
		}
		seen[m.Name] = true
	}
	return nil
}

// checkCapabilities refuses what the agent has declared it cannot do, so that a
// run never silently does less than was asked.
func (s *RunSpec) checkCapabilities(agent *pluginapi.Agent) error {
	c := agent.GetCapabilities()
	for _, want := range []struct {
		asked bool
		can   bool
		what  string
		hint  string
	}{
		{s.Resume != "", c.GetResume(), "resume a session (--resume)", ""},
		{s.Continue, c.GetContinueLast(), "continue the last session (--continue)", ""},
		{s.Fork, c.GetFork(), "fork a session (--fork)", ""},
		{s.NoSession, c.GetNoSession(), "run without saving a session (--no-session)", ""},
		{s.Conversation, c.GetMultiTurn(), "take more than one prompt in a run", "start a run for each prompt"},
		{s.Model != "", c.GetModel(), "choose a model (--model)", "set it in the agent's own settings"},
		{s.SystemPrompt != "" && s.SystemMode == "append", c.GetSystemAppend(), "append to its system prompt (--system)", "put it into the prompt"},
		{s.SystemPrompt != "" && s.SystemMode == "replace", c.GetSystemReplace(), "replace its system prompt (--system-mode replace)", "put it into the prompt"},
		{s.SystemPrompt != "" && s.SystemMode == "prepend", false, "prepend to its system prompt (--system-mode prepend)", "use --system-mode append"},
		{len(s.MCPServers) > 0, c.GetMcp(), "use MCP servers (--mcp)", ""},
		{len(s.AddDirs) > 0, c.GetAddDirs(), "work in more directories (--add-dir)", ""},
		{s.MaxTurns > 0, c.GetMaxTurns(), "limit its turns (--max-turns)", "use --timeout"},
		{s.MaxBudget > 0, c.GetMaxBudget(), "limit its own cost", "use --max-cost or --timeout"},
		{s.JSONSchema != "", c.GetJsonSchema(), "answer by a JSON schema (--json-schema)", ""},
		{len(s.Files) > 0, c.GetAttachFiles() || c.GetAttachImages(), "take attachments (--file)", "name the file in the prompt"},
		{s.PTY, c.GetPtyOptional() || c.GetPtyRequired(), "run in a pseudo-terminal (--pty)", ""},
		{s.Approve == ApproveAsk, c.GetApprovals(), "ask before it acts (--approve ask)", "use --approve deny or auto"},
		{s.Approve == ApproveRules, c.GetApprovals() || c.GetToolRules(), "be judged by rules (--approve rules)", ""},
	} {
		if want.asked && !want.can {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot %s", agent.Id, want.what).
				WithHint("%s", cmp.Or(want.hint, "see: amux agents info "+agent.Id))
		}
	}
	if err := s.checkReports(agent); err != nil {
		return err
	}
	if s.Effort != "" {
		var levels []string
		found := false
		for _, e := range agent.Efforts {
			levels = append(levels, e.Level)
			found = found || e.Level == s.Effort || e.Native == s.Effort
		}
		if len(levels) == 0 {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s has no effort levels (--effort)", agent.Id).
				WithHint("choose a model instead")
		}
		if !found {
			return invalid("effort %q is not one of %s", s.Effort, strings.Join(levels, ", "))
		}
	}
	if s.Driver != "" && !slices.Contains(agent.Drivers, s.Driver) {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s has no driver %q", agent.Id, s.Driver).
			WithHint("%s", driverHint(agent))
	}
	return nil
}

func driverHint(agent *pluginapi.Agent) string {
	if len(agent.Drivers) == 0 {
		return "leave out --driver"
	}
	return fmt.Sprintf("it has: %s", strings.Join(agent.Drivers, ", "))
}

// validator is amux-schema, which stands beside amux-shim.
func (o *Options) validator() schema.Program {
	return schema.Program(filepath.Join(filepath.Dir(o.ShimPath), schema.Name+exeSuffix()))
}

// checkSchema refuses what is not a JSON schema; "" stands for no schema.
func (o *Options) checkSchema(text string) error {
	if text == "" {
		return nil
	}
	err := o.validator().Validate(text)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, schema.ErrUnavailable):
		return pluginapi.Errorf(pluginapi.CodeSpawn, "the JSON schema: %w", err).WithHint("see: amux doctor")
	}
	return invalid("the JSON schema cannot be used: %w", err)
}

// answerCheck says why an answer does not match a schema; nil if there is none.
func (o *Options) answerCheck(text string) func(answer string) error {
	if text == "" {
		return nil
	}
	return func(answer string) error { return o.validator().Check(text, answer) }
}
