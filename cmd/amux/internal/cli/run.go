package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// runner starts runs.
type runner interface {
	Start(ctx context.Context, spec host.RunSpec) (Run, error)
}

func newRun(s *session) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [AGENT] [PROMPT | -]",
		Short: "Run an agent with a prompt",
		Long: `Run an agent with a prompt, which may also come from stdin. What is piped into amux
beside a prompt follows it after a blank line, up to 8 MiB together; a pipe that stays
empty for three seconds is left alone. In a loop that reads lines of the same stdin,
give amux < /dev/null.

The assistant's text goes to stdout; thinking, tools, questions and the last line
with turns, tokens, cost and time go to stderr. Without an agent it is that of
config.toml, or the only one that is installed and signed in. Ctrl-C once
interrupts the agent's turn, twice stops the run. Nothing that the agent started
outlives its run, nor do servers it left in the background.

With --json-schema the agent's last message must be one JSON document that matches
the schema, and nothing else: no prose, no Markdown fence. Otherwise the run fails
with AGENT_FAILED (exit code 1) and names the place that does not match. amux checks
the schema before it starts anything, and fetches nothing that it refers to.`,
		Example: `  amux run claude "why does the build fail?"
  amux run demo "hello" > answer.txt
  git diff | amux run claude "review this"
  git diff | amux run claude - --json | jq -r 'select(.type == "text_delta").delta'
  amux run claude "list the TODOs" --quiet --json-schema todos.schema.json | jq .`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.agentNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: command(func(cmd *cobra.Command, args []string) error {
			o.retrySet = cmd.Flags().Changed("retry")
			err := s.run(o, args)
			if o.json {
				s.tellProgram(err)
			}
			return err
		}),
	}
	o.addFlags(cmd)
	return cmd
}

// run does everything that comes before the start, and the start.
func (s *session) run(o *runOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if len(args) > 2 {
		return usage("the prompt is in %d pieces", len(args)-1).WithHint("put it in quotes: amux run %s \"%s …\"", args[0], args[1])
	}
	if _, err := s.loadSettings(); err != nil {
		return err
	}
	spec, err := o.spec(s)
	if err != nil {
		return err
	}
	h, err := s.theHost()
	if err != nil {
		return err
	}
	ctx := context.Background()
	name, prompt, fromStdin, err := s.agentAndPrompt(ctx, h, args)
	if err != nil {
		return err
	}
	if name == "" {
		if name, err = s.defaultAgent(ctx, h); err != nil {
			return err
		}
	}
	agent, err := h.Agent(ctx, name)
	if err == nil {
		err = agent.Err
	}
	if err != nil {
		return err
	}
	spec.Agent = name
	if err := s.applySettings(&spec, agent); err != nil {
		return err
	}
	if own, ok := s.settings.Agents[name]; ok { // for whoever hosts the run
		spec.Launch = &host.Launch{Adapter: own.Adapter, Line: own.Line, Argv: own.Argv}
	}
	asked := slices.Contains(args, "-")
	spec.Conversation = o.interactive || o.input != "" && !asked
	if n := s.settings.Retry; n > 0 && !o.retrySet && !spec.Conversation {
		spec.Retry = &host.Retry{MaxAttempts: n}
	}
	switch {
	case o.input != "":
		if o.commands = newCommands(s.app.IO.In); asked {
			prompt, err = o.commands.prompt()
		}
	case fromStdin && !spec.Conversation:
		prompt, err = s.readPrompt(asked)
	case !spec.Conversation:
		prompt, err = s.withPiped(prompt, o.quiet)
	}
	if err != nil {
		return err
	}
	if !utf8.ValidString(prompt) {
		return usage("the prompt is not valid UTF-8").WithHint("convert it, for example: iconv -f latin1 -t utf-8")
	}
	spec.Prompt = prompt
	s.chooseApprove(&spec, o, agent.Description.GetCapabilities().GetApprovals())
	if err := s.warnOverrides(); err != nil {
		return err
	}
	if o.detach {
		return s.detach(h, spec, agent, o)
	}
	spec.OnPlan = s.onPlan(agent, o)
	return s.start(h, spec, o)
}

// tellProgram says on stdout, as an event of no run, why none was started.
func (s *session) tellProgram(err error) {
	if _, told := errors.AsType[exitError](err); told || err == nil {
		return
	}
	s.printError("", pluginapi.AsError(err))
}

// printError writes an error to stdout as an event without a number: of the run, or of
// none if runID is empty.
func (s *session) printError(runID string, e *pluginapi.Error) {
	event, err := pluginapi.AppendPayload(nil, pluginapi.ErrorEvent{
		Code: e.Code, Message: e.Error(), Hint: cmp.Or(e.Hint, e.Code.Info().Hint),
	})
	if err != nil {
		return
	}
	run := ""
	if runID != "" {
		run = fmt.Sprintf(`"run_id":%q,`, runID)
	}
	_, _ = fmt.Fprintf(s.app.IO.Out, "{\"type\":\"error\",%s%s\n", run, event[1:])
}

// agentAndPrompt tells the arguments apart. fromStdin says that the prompt is not
// among them.
func (s *session) agentAndPrompt(ctx context.Context, h lister, args []string) (agent, prompt string, fromStdin bool, err error) {
	switch {
	case len(args) == 2:
		return args[0], args[1], args[1] == "-", nil
	case len(args) == 0 || args[0] == "-":
		return "", "", true, nil
	}
	if agentRule.MatchString(args[0]) {
		_, err := h.Agent(ctx, args[0])
		if !errors.Is(err, pluginapi.CodeAgentNotFound) {
			return args[0], "", true, nil // known, though perhaps broken
		}
	}
	return "", args[0], false, nil
}

var agentRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// defaultAgent is the configured agent, or the only one that is ready.
func (s *session) defaultAgent(ctx context.Context, h lister) (string, error) {
	set, err := s.loadSettings()
	if err != nil {
		return "", err
	}
	if set.Agent != "" {
		return set.Agent, nil
	}
	agents, err := h.Agents(ctx)
	if err != nil {
		return "", err
	}
	var ready, others []string
	for _, a := range agents {
		switch {
		case a.Description == nil || a.Description.Demo || a.Description.Configurable || a.Launch != nil: // those are named
		case a.Err != nil:
			others = append(others, a.Description.Id+" (plugin broken)")
		case !a.PlatformOK:
			others = append(others, a.Description.Id+" (not for this platform)")
		case !a.Installed:
			others = append(others, a.Description.Id+" (not installed)")
		case !a.SignedIn:
			others = append(others, a.Description.Id+" (not signed in)")
		default:
			ready = append(ready, a.Description.Id)
		}
	}
	switch len(ready) {
	case 1:
		return ready[0], nil
	case 0:
		err := usage("which agent? None is installed and signed in")
		if len(others) > 0 {
			err = usage("which agent? None is installed and signed in: %s", strings.Join(others, ", "))
		}
		return "", err.WithHint(`name one: amux run AGENT "…"; one that needs nothing: amux run demo "hello"`)
	}
	return "", usage("which agent? Several are installed and signed in: %s", strings.Join(ready, ", ")).
		WithHint(`name one: amux run %s "…"; or set agent = "%s" in config.toml`, ready[0], ready[0])
}

// readPrompt reads the prompt from stdin, byte for byte. asked says that "-" did.
func (s *session) readPrompt(asked bool) (string, error) {
	if s.app.IO.InTTY && !asked {
		return "", usage("there is no prompt").WithHint(`give it as an argument, amux run AGENT "…", or on stdin`)
	}
	data, err := s.readStdin(host.MaxPrompt)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", usage("there is no prompt: stdin is empty").WithHint(`give it as an argument, amux run AGENT "…", or on stdin`)
	}
	return string(data), nil
}

// readStdin reads stdin to its end, at most limit bytes.
func (s *session) readStdin(limit int64) ([]byte, error) {
	data, err := foreign.ReadStream(s.app.IO.In, limit)
	if errors.Is(err, foreign.ErrTooLarge) {
		return nil, usage("there is more on stdin than a prompt may have (%d MiB)", host.MaxPrompt>>20).
			WithHint("put the long text into a file and name it")
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeInternal, "read the prompt from stdin: %w", err)
	}
	return data, nil
}

// pipedWait is how long a pipe may stay without a first byte. A program that starts
// amux often leaves an idle one open for as long as it lives.
const pipedWait = 3 * time.Second

// withPiped appends what is piped into amux to a prompt that was given as an argument.
func (s *session) withPiped(prompt string, quiet bool) (string, error) {
	streams := s.app.IO
	if !streams.InPiped {
		return prompt, nil
	}
	note := s.errf
	if quiet {
		note = func(string, ...any) {}
	}
	if streams.WaitIn != nil && !streams.WaitIn(pipedWait) {
		note("nothing came on stdin for %v, so only the prompt is sent; with - for the prompt amux waits, with < /dev/null it does not", pipedWait)
		return prompt, nil
	}
	data, err := s.readStdin(max(0, int64(host.MaxPrompt-len(prompt)-len("\n\n"))))
	if err != nil || len(data) == 0 {
		return prompt, err
	}
	note("%s of stdin follow the prompt", plural(len(data), "byte"))
	return prompt + "\n\n" + string(data), nil
}

// applySettings fills in what config.toml says and the flags do not.
func (s *session) applySettings(spec *host.RunSpec, agent host.AgentInfo) error {
	set, err := s.loadSettings()
	if err != nil {
		return err
	}
	// A model belongs to an agent: that of the settings is not for another.
	if set.Agent == "" || set.Agent == spec.Agent {
		if spec.Model == "" {
			spec.Model = set.Model
		}
		if spec.Effort == "" {
			spec.Effort = set.Effort
		}
	}
	if spec.SystemPrompt == "" && set.SystemPrompt != "" {
		if agent.Description.GetCapabilities().GetSystemAppend() {
			spec.SystemPrompt = set.SystemPrompt
		} else {
			s.warnLater("system_prompt of config.toml is not used: agent %s takes none", spec.Agent)
		}
	}
	spec.Tags = append(slices.Clone(set.Tags), spec.Tags...)
	if spec.Timeout == 0 {
		spec.Timeout = set.Timeout
	}
	if spec.IdleTimeout == 0 {
		spec.IdleTimeout = set.IdleTimeout
	}
	spec.Sync = host.SyncMode(set.Sync)
	if spec.Grace == 0 {
		spec.Grace = set.Grace
		if text := s.getenv("AGENT_MUX_GRACE_PERIOD_MS"); text != "" {
			ms, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return usage("AGENT_MUX_GRACE_PERIOD_MS=%s: want a number of milliseconds", text)
			}
			spec.Grace = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// chooseApprove decides who answers when the agent asks before it acts.
func (s *session) chooseApprove(spec *host.RunSpec, o *runOptions, asks bool) {
	set := s.settings
	somebody := o.input != "" || o.interactive || s.app.IO.InTTY && s.app.IO.ErrTTY && !o.json && !o.detach
	switch {
	case o.approve != "":
		spec.Approve = host.ApproveMode(o.approve)
		// Who says so without a terminal means to answer from another.
		somebody = somebody || spec.Approve == host.ApproveAsk
	case len(spec.AllowRules)+len(spec.DenyRules) > 0 && !somebody:
		spec.Approve = host.ApproveRules
	case set.Approve != "" && (set.Approve != "ask" || somebody):
		spec.Approve = host.ApproveMode(set.Approve)
	case somebody && asks:
		spec.Approve = host.ApproveAsk
	case somebody:
		spec.Approve = host.ApproveDeny
	default:
		spec.Approve = host.ApproveDeny
		s.denyWarning = "nobody can answer here, so what the agent asks leave for is denied; choose by --approve auto or --allow RULE"
	}
	spec.Unattended = !somebody
}

// warnOverrides says which plugins are not the installed ones, on every run.
func (s *session) warnOverrides() error {
	overrides, err := s.overrides()
	if err != nil {
		return err
	}
	names := make([]string, 0, len(overrides))
	for name := range overrides {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s.warnLater("plugin %s is overridden by %s", name, overrides[name])
	}
	in, err := s.installer("")
	if err != nil {
		return err
	}
	if lock, err := install.ReadLock(in.LockFile()); err == nil { // one that cannot be read stops the run elsewhere
		for _, entry := range lock.Plugins {
			if entry.Link != "" && overrides[entry.Name] == "" {
				s.warnLater("plugin %s is linked to %s", entry.Name, entry.Link)
			}
		}
	}
	return nil
}

// agentNames are for completion.
func (s *session) agentNames() []string {
	h, err := s.theHost()
	if err != nil {
		return nil
	}
	agents, err := h.Agents(context.Background())
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range agents {
		if a.Description != nil {
			names = append(names, choiceOf(a.Description.Id, a.Description.Summary))
		}
	}
	return names
}
