package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// request is a run until it starts.
type request struct {
	*Options
	settings settings.Settings
	agent    host.AgentInfo
	spec     host.RunSpec
	commands *commands // of --input ndjson
	prompt   *string   // that was read already; nil: it was not
	answered bool      // a program will answer what the agent asks

	// warnings are printed when the run has started: an error is printed alone.
	warnings []string
	// denyWarning is printed when the agent first asks for a permission that nobody
	// can give.
	denyWarning string
}

// prepare completes the spec: agent, prompt, settings, approvals. It starts nothing.
func (r *request) prepare(ctx context.Context, h app.Agents, args []string) error {
	name, prompt, fromStdin, err := agentAndPrompt(ctx, h, args)
	if err != nil {
		return err
	}
	if name == "" {
		if name, err = r.defaultAgent(ctx, h); err != nil {
			return err
		}
	}
	r.agent, err = h.Agent(ctx, name)
	if err == nil {
		err = r.agent.Err
	}
	if err != nil {
		return err
	}
	r.spec.Agent = name
	if err := r.applySettings(); err != nil {
		return err
	}
	asked := slices.Contains(args, "-")
	r.spec.Conversation = r.Interactive || r.Input != "" && !asked
	if n := r.settings.Retry; n > 0 && !r.Retry.given && !r.spec.Conversation {
		r.spec.Retry = &host.Retry{MaxAttempts: n}
	}
	switch {
	case r.prompt != nil:
		prompt = *r.prompt
	case r.Input != "":
		if r.commands = newCommands(r.Process.IO.In); asked {
			prompt, err = r.commands.prompt()
		}
	case fromStdin && !r.spec.Conversation:
		prompt, err = r.Prompts.Read(asked)
	case !r.spec.Conversation:
		prompt, err = r.Prompts.WithPiped(prompt, r.Quiet)
	}
	if err == nil {
		err = app.CheckPrompt(prompt)
	}
	if err != nil {
		return err
	}
	r.spec.Prompt = prompt
	r.chooseApprove(r.agent.Description.GetCapabilities().GetApprovals())
	return r.warnOverrides()
}

func (r *request) warnLater(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

func (r *request) printWarnings() {
	for _, text := range r.warnings {
		r.Print.Warnf("%s", text)
	}
}

// agentAndPrompt tells the arguments apart. fromStdin says that the prompt is not
// among them.
func agentAndPrompt(ctx context.Context, h app.Agents, args []string) (agent, prompt string, fromStdin bool, err error) {
	switch {
	case len(args) == 2:
		if way := app.RunVerb(args[0]); way != "" {
			if _, err := h.Agent(ctx, args[0]); errors.Is(err, pluginapi.CodeAgentNotFound) {
				return "", "", false, pluginapi.AsError(err).WithHint("in amux that is %s", way)
			}
		}
		return args[0], args[1], args[1] == "-", nil
	case len(args) == 0 || args[0] == "-":
		return "", "", true, nil
	}
	way := app.RunVerb(args[0])
	if agentRule.MatchString(args[0]) {
		_, err := h.Agent(ctx, args[0])
		if !errors.Is(err, pluginapi.CodeAgentNotFound) {
			return args[0], "", true, nil // known, though perhaps broken
		}
	}
	if way != "" { // not a prompt that anybody pays for
		return "", "", false, app.Usagef("there is no agent named %q", args[0]).
			WithHint(`in amux that is %s; for this prompt name an agent: amux run AGENT %q`, way, args[0])
	}
	return "", args[0], false, nil
}

var agentRule = pattern.New(`^[a-z][a-z0-9-]{0,39}$`)

// defaultAgent is the configured agent, or the only one that is ready.
func (r *request) defaultAgent(ctx context.Context, h app.Agents) (string, error) {
	if r.settings.Agent != "" {
		return r.settings.Agent, nil
	}
	agents, err := h.Agents(ctx)
	if err != nil {
		return "", err
	}
	var ready, others []string
	for _, a := range agents {
		switch {
		case a.Description == nil || a.Description.Demo || a.Description.Configurable || a.Launch != nil: // only by name
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
		err := app.Usagef("no agent named, and none is installed and signed in")
		if len(others) > 0 {
			err = app.Usagef("no agent named, and none is installed and signed in: %s", strings.Join(others, ", "))
		}
		return "", err.WithHint(`name one: amux run AGENT "…"; one that needs nothing: amux run demo "hello"`)
	}
	return "", app.Usagef("no agent named, and several are installed and signed in: %s", strings.Join(ready, ", ")).
		WithHint(`name one: amux run %s "…"; or set agent = "%s" in config.toml`, ready[0], ready[0])
}

// applySettings fills in what config.toml sets and the flags do not.
func (r *request) applySettings() error {
	set, spec := r.settings, &r.spec
	// A model belongs to an agent: that of the settings is not for another one.
	if set.Agent == "" || set.Agent == spec.Agent {
		if spec.Model == "" {
			spec.Model = set.Model
		}
		if spec.Effort == "" {
			spec.Effort = set.Effort
		}
	}
	if spec.SystemPrompt == "" && set.SystemPrompt != "" {
		if r.agent.Description.GetCapabilities().GetSystemAppend() {
			spec.SystemPrompt = set.SystemPrompt
		} else {
			r.warnLater("system_prompt of config.toml is not used: agent %s does not support one", spec.Agent)
		}
	}
	if own, ok := set.Agents[spec.Agent]; ok { // for the process that hosts the run
		spec.Launch = &host.Launch{Adapter: own.Adapter, Line: own.Line, Argv: own.Argv}
	} else if r.agent.Launch != nil { // that of an agent added from a registry
		spec.Launch = r.agent.Launch
	}
	spec.Tags = withTags(set.Tags, spec.Tags)
	if spec.Timeout == 0 {
		spec.Timeout = set.Timeout
	}
	if spec.IdleTimeout == 0 {
		spec.IdleTimeout = set.IdleTimeout
	}
	r.applyProfile()
	r.applyBudgets()
	r.applySandbox()
	at, named := app.PlacesOf(set)[spec.On]
	if named {
		spec.Place = &at
	}
	if strings.HasPrefix(spec.On, "docker:") || at.Docker != "" { // it works in a folder of this machine
		spec.Cwd = r.Process.Abs(cmp.Or(spec.Cwd, at.Folder, "."))
	}
	spec.Sync = host.SyncMode(set.Sync)
	spec.Changes = !set.NoChanges && !r.NoChanges
	if spec.Grace == 0 {
		spec.Grace = set.Grace
		if text := r.Process.Getenv("AGENT_MUX_GRACE_PERIOD_MS"); text != "" {
			ms, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return app.Usagef("invalid AGENT_MUX_GRACE_PERIOD_MS %q: expected a number of milliseconds", text)
			}
			spec.Grace = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// applySandbox adds what [sandbox] says to a sandbox, and makes one if it always wants one.
// A flag that says whom the agent may reach wins.
func (r *request) applySandbox() {
	set, spec := r.settings.Sandbox, &r.spec
	if set.Always && spec.Sandbox == nil && !r.Sandbox.off {
		spec.Sandbox = &host.Sandbox{}
	}
	if spec.Sandbox == nil {
		return
	}
	if len(spec.Sandbox.Network) == 0 {
		spec.Sandbox.Network = set.Network
	}
	spec.Sandbox.Secrets = append(spec.Sandbox.Secrets, set.Secrets...)
	spec.Sandbox.Read = append(spec.Sandbox.Read, set.Read...)
	spec.Sandbox.Write = append(spec.Sandbox.Write, set.Write...)
}

// chooseApprove decides who answers permission requests. asks says that the agent can
// ask.
func (r *request) chooseApprove(asks bool) {
	set, spec := r.settings, &r.spec
	somebody := r.answered || r.Input != "" || r.Interactive || r.Process.Attended() && !r.JSON && !r.Detach && len(r.Each) == 0
	switch {
	case r.Approve != "":
		spec.Approve = host.ApproveMode(r.Approve)
		// --approve ask without a terminal means an answer from another one.
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
		r.denyWarning = "no terminal: permission requests will be denied (use --approve auto or --allow RULE)"
	}
	spec.Unattended = !somebody
}

// warnOverrides names the plugins that are not the installed ones, on every run.
func (r *request) warnOverrides() error {
	user, err := r.Config.User()
	if err != nil {
		return err
	}
	overrides, err := r.Config.Overrides(user)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		r.warnLater("plugin %s is overridden by %s", name, overrides[name])
	}
	in, err := r.Plugins.Installer("")
	if err != nil {
		return err
	}
	if lock, err := install.ReadLock(in.LockFile()); err == nil { // an invalid one stops the run elsewhere
		for _, entry := range lock.Plugins {
			if entry.Link != "" && overrides[entry.Name] == "" {
				r.warnLater("plugin %s is linked to %s", entry.Name, entry.Link)
			}
		}
	}
	return nil
}
