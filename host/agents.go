package host

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/authprobe"
)

// AgentInfo is what is known of an agent without starting anything.
type AgentInfo struct {
	Description   *pluginapi.Agent
	Plugin        string
	PluginVersion string
	Trust         string // "bundled", "signed by …"
	Bundled       bool   // the plugin came with amux
	// Identity is what vouches for an installed plugin, the key that signed it or else
	// the hash of its executable; "" for bundled ones and those under development.
	Identity string
	// InPlaceOf are the other plugins that declare the agent, where the user chose this
	// one.
	InPlaceOf  []string
	Program    string // where its CLI is; "" if it is absent or needs none
	Version    string // of the CLI, as last asked; "" if it never was
	PlatformOK bool
	Installed  bool
	SignedIn   bool
	Auth       []*pluginapi.AuthState // by the declared probes
	Launch     *Launch                // of the user's own agents
	Err        error                  // why its plugin cannot be used; the rest may be empty
}

// Agents lists the agents of all plugins by name. It starts nothing. A broken
// plugin is a row with Err, named after the plugin.
func (h *Host) Agents(ctx context.Context) ([]AgentInfo, error) {
	byID := map[string]AgentInfo{}
	plugins := h.registry.List()
	// What a lock that cannot be read has chosen is not known: its row says so, and the
	// others what there is.
	all, readable := registry.NewSet(plugins), registry.NewSet(slices.DeleteFunc(slices.Clone(plugins), registry.Plugin.IsLock))
	for _, p := range plugins {
		if p.Err != nil {
			if serving := all.Serving(p.Name); serving != nil && serving.Name != p.Name {
				continue // an agent of that name is another plugin's
			}
			byID[p.Name] = AgentInfo{
				Description: &pluginapi.Agent{Id: p.Name}, Plugin: p.Name, PluginVersion: p.Version, Trust: p.Trust, Err: p.Err,
			}
			continue
		}
		for _, agent := range p.Description.Agents {
			if agent.Configured {
				continue // it is run under the users' own names
			}
			// Of two plugins for one agent the registry's choice counts.
			if serving := readable.Serving(agent.Id); serving != nil && serving.Name == p.Name {
				byID[agent.Id] = h.catalog.describe(p, agent)
			}
		}
	}
	for name := range h.opts.Agents {
		info, err := h.catalog.agent(all, name)
		if err != nil {
			info = AgentInfo{Description: &pluginapi.Agent{Id: name}, Plugin: "config.toml", Err: err}
		}
		byID[name] = info
	}
	var list []AgentInfo
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		list = append(list, byID[id])
	}
	return list, nil
}

// Agent describes one agent.
func (h *Host) Agent(ctx context.Context, name string) (AgentInfo, error) {
	return h.catalog.agent(h.registry, name)
}

// DetectAuth asks the adapter whether the user is signed in; it starts the plugin. Of an
// adapter that knows no more than its auth probes they are the answer.
func (h *Host) DetectAuth(ctx context.Context, name string) (*pluginapi.AuthResponse, error) {
	process, agent, err := h.queries.capable(ctx, name, "", nil)
	if err != nil {
		return nil, err
	}
	world := caller(agent, h.opts.Env, h.opts.ProjectDir, nil)
	resp, err := process.DetectAuth(ctx, &pb.DetectAuthRequest{Agent: h.catalog.adapter(name), Caller: world}, program.Exec(command.Command{Env: h.opts.Env}))
	if errors.Is(err, pluginapi.CodeCapability) {
		return &pluginapi.AuthResponse{
			States:   authprobe.Evaluate(agent.AuthProbes, world, authprobe.Options{}),
			Guidance: agent.AuthGuidance,
		}, nil
	}
	h.plugins.Hangs(ctx, process, err)
	return resp, err
}

// AgentModels lists the models that the agent knows of, by its own command. It starts
// the plugin of amux. What the adapter knows by itself is in Agent.
func (h *Host) AgentModels(ctx context.Context, name string) ([]*pluginapi.Model, error) {
	process, agent, err := h.queries.askable(ctx, name, "list models", (*pluginapi.Capabilities).GetListModels)
	if err != nil {
		return nil, err
	}
	list, err := process.ListModels(ctx, &pluginapi.ModelsQuery{
		Agent: h.catalog.adapter(name), Caller: caller(agent, h.opts.Env, h.opts.ProjectDir, nil),
	}, program.Exec(h.queries.command("")))
	h.plugins.Hangs(ctx, process, err)
	return list, err
}

// catalog knows the agents: those that plugins bring, and the user's own.
type catalog struct {
	opts     *Options
	registry *registry.Registry
	programs program.Versions
}

// agents is where agents are found: on the disk, which the registry looks at, or in what it has seen there.
type agents interface {
	Agent(name string) (registry.Plugin, *pluginapi.Agent, error)
	Has(name string) *pluginapi.Agent
}

// agent describes one agent.
func (c *catalog) agent(in agents, name string) (AgentInfo, error) {
	p, agent, launch, err := c.findIn(in, name, nil)
	if err != nil {
		return AgentInfo{}, err
	}
	info := c.describe(p, agent)
	info.Launch = launch
	if !info.Bundled && p.Granted(agent.Id) {
		for _, claim := range registry.Claims(c.registry.List()) {
			if claim.Agent == agent.Id {
				info.InPlaceOf = claim.Others
			}
		}
	}
	return info, nil
}

// find is findIn the registry.
func (c *catalog) find(name string, launch *Launch) (registry.Plugin, *pluginapi.Agent, *Launch, error) {
	return c.findIn(c.registry, name, launch)
}

// findIn finds an agent and its plugin: one that a plugin brings, or one of the
// user's own, which launch or Options.Agents give a command.
func (c *catalog) findIn(in agents, name string, launch *Launch) (registry.Plugin, *pluginapi.Agent, *Launch, error) {
	if own, ok := c.opts.Agents[name]; ok && launch == nil {
		launch = &own
	}
	if launch == nil {
		plugin, agent, err := in.Agent(name)
		if err == nil && agent.Configured {
			err = invalid("agent %s has no command of its own", name).
				WithHint("give it one in config.toml: [agents.NAME] with adapter = %q and command = \"…\"; then: amux run NAME", name)
		}
		return plugin, agent, nil, err
	}
	if agent := in.Has(name); agent != nil && !agent.Configured {
		return registry.Plugin{}, nil, nil, configError("there is an agent %s already", name)
	}
	plugin, base, err := in.Agent(launch.Adapter)
	if err != nil {
		return plugin, nil, nil, err
	}
	switch {
	case !base.Configured && !base.Configurable:
		return plugin, nil, nil, configError("agent %s: the adapter %s has a command of its own", name, launch.Adapter)
	case (launch.Line == "") == (len(launch.Argv) == 0):
		return plugin, nil, nil, configError("agent %s: its command is neither a line nor a list", name)
	case strings.ContainsRune(launch.Line+strings.Join(launch.Argv, ""), 0):
		return plugin, nil, nil, configError("agent %s: its command has a NUL byte", name)
	}
	agent := copyOf(base)
	agent.Id, agent.DisplayName, agent.Configured, agent.Configurable = name, "", false, false
	agent.Versions, agent.Installs = nil, nil // those of another program
	if len(launch.Argv) > 0 {
		agent.Program = launch.Argv[0]
	}
	return plugin, agent, launch, nil
}

// copyOf copies the fields of an agent, which both then share. proto.Clone takes 0.6 ms when it sees its first message.
func copyOf(agent *pluginapi.Agent) *pluginapi.Agent {
	from, to := reflect.ValueOf(agent).Elem(), &pluginapi.Agent{}
	for i := range from.NumField() {
		if from.Type().Field(i).IsExported() {
			reflect.ValueOf(to).Elem().Field(i).Set(from.Field(i))
		}
	}
	return to
}

// adapter is the agent that the plugin knows, for an agent by name.
func (c *catalog) adapter(name string) string {
	if own, ok := c.opts.Agents[name]; ok {
		return own.Adapter
	}
	return name
}

// describe says what is known of an agent without starting anything.
func (c *catalog) describe(p registry.Plugin, agent *pluginapi.Agent) AgentInfo {
	info := AgentInfo{
		Description: agent, Plugin: p.Name, PluginVersion: p.Version, Trust: p.Trust, PlatformOK: program.PlatformOK(agent),
		Bundled: p.Origin == registry.OriginBundled,
	}
	if (p.Origin == registry.OriginUser || p.Origin == registry.OriginProject) && !p.Linked {
		info.Identity = cmp.Or(p.Signer, p.SHA256)
	}
	cwd := c.opts.ProjectDir
	if agent.Program != "" {
		info.Program = command.Look(agent.Program, c.opts.Env, cwd)
		info.Version = c.programs.Known(agent, info.Program)
	}
	info.Installed = info.PlatformOK && (agent.Program == "" || info.Program != "")
	info.Auth = authprobe.Evaluate(agent.AuthProbes, caller(agent, c.opts.Env, cwd, nil), authprobe.Options{Now: time.Now()})
	info.SignedIn = len(agent.AuthProbes) == 0
	for _, state := range info.Auth {
		info.SignedIn = info.SignedIn || state.Status == "authenticated"
	}
	return info
}

// queries start the plugins that answer questions about an agent which has no run.
type queries struct{ host *Host }

// capable starts the plugin of an agent that has a capability; nil: of any.
func (q *queries) capable(ctx context.Context, name, what string, can func(*pluginapi.Capabilities) bool) (*adapter.Process, *pluginapi.Agent, error) {
	plugin, agent, _, err := q.host.catalog.find(name, nil)
	if err != nil {
		return nil, nil, err
	}
	if can != nil && !can(agent.GetCapabilities()) {
		return nil, nil, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s: its adapter cannot %s", name, what).
			WithHint("amux agents list shows the agents; amux agents info AGENT what each can do")
	}
	if err := prepare(q.host); err != nil {
		return nil, nil, err
	}
	verified, err := q.host.registry.Verify(plugin)
	if err != nil {
		return nil, nil, err
	}
	process, err := q.host.plugins.Get(ctx, verified)
	return process, agent, err
}

// command is for commands that read an agent's store.
func (q *queries) command(dir string) command.Command {
	return command.Command{Env: q.host.opts.Env, Cwd: q.host.opts.ProjectDir, Time: program.StoreTime, Dir: dir}
}

// askable is capable for what the agent's own command is needed for.
func (q *queries) askable(ctx context.Context, name, what string, can func(*pluginapi.Capabilities) bool) (*adapter.Process, *pluginapi.Agent, error) {
	process, agent, err := q.capable(ctx, name, what, can)
	if err == nil && agent.Program != "" && command.Look(agent.Program, q.host.opts.Env, q.host.opts.ProjectDir) == "" {
		err = pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s is not installed: no program %q in PATH", name, agent.Program).
			WithHint("%s", program.InstallHint(agent))
	}
	return process, agent, err
}

// scratch is a folder for what the commands of one call print, and its removal. It is
// named as that of a run, so that one that is left is found like those.
func (q *queries) scratch() (dir string, remove func()) {
	dir = filepath.Join(q.host.opts.TempDir, "agent-mux-"+ulid.Make().String())
	return dir, func() { _ = os.RemoveAll(dir) }
}

// Installation is how an agent's CLI is installed here.
type Installation struct {
	Agent   string
	Kind    string // npm, brew, …
	Argv    []string
	Note    string
	Version string // the one that the adapter was tested with; "" if it names none
	Newer   bool   // than the one that is there now
}

// Installation chooses a method among those that the adapter declares: the first for
// this platform whose prerequisites are there, or that of a kind. It runs nothing but
// the prerequisites' own version commands.
func (h *Host) Installation(ctx context.Context, name, kind string) (Installation, error) {
	_, agent, _, err := h.catalog.find(name, nil)
	if err != nil {
		return Installation{}, err
	}
	if agent.Program == "" {
		return Installation{}, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s comes with its plugin: there is nothing to install", name).
			WithHint("amux run %s", name)
	}
	if !program.PlatformOK(agent) {
		_, err := h.catalog.programs.Find(ctx, agent, h.opts.Env, h.opts.ProjectDir)
		return Installation{}, err
	}
	var kinds, missing []string
	for _, in := range agent.Installs {
		if len(in.Platforms) > 0 && !slices.Contains(in.Platforms, runtime.GOOS) && !slices.Contains(in.Platforms, runtime.GOOS+"/"+runtime.GOARCH) {
			continue
		}
		if len(in.Argv) == 0 {
			if in.Note != "" {
				missing = append(missing, in.Note)
			}
			continue
		}
		kinds = append(kinds, in.Kind)
		if kind != "" && in.Kind != kind {
			continue
		}
		if lacks := program.Lacks(ctx, in, h.opts.Env, h.opts.ProjectDir); lacks != "" {
			missing = append(missing, in.Kind+": "+lacks)
			continue
		}
		tested := agent.GetVersions().GetTested()
		there := h.catalog.programs.Known(agent, command.Look(agent.Program, h.opts.Env, h.opts.ProjectDir))
		return Installation{Agent: name, Kind: in.Kind, Argv: in.Argv, Note: in.Note, Version: tested, Newer: there != "" && program.Older(there, tested)}, nil
	}
	if kind != "" && !slices.Contains(kinds, kind) {
		return Installation{}, invalid("agent %s cannot be installed by %q here", name, kind).
			WithHint("see: amux agents info %s", name)
	}
	return Installation{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s cannot be installed by amux here", name).
		WithHint("%s", strings.Join(missing, "; or "))
}

// Install carries an installation out in the terminal that in and out are, and looks
// whether the CLI is there then.
func (h *Host) Install(ctx context.Context, i Installation, in io.Reader, out io.Writer) (AgentInfo, error) {
	cmd := exec.CommandContext(ctx, command.Look(i.Argv[0], h.opts.Env, h.opts.ProjectDir), i.Argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = h.opts.Env, in, out, out
	if err := cmd.Run(); err != nil {
		return AgentInfo{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "%s: %w", strings.Join(i.Argv, " "), err).
			WithHint("what it printed says why; amux agents info %s shows other ways", i.Agent)
	}
	info, err := h.Refresh(ctx, i.Agent)
	if err == nil && !info.Installed {
		err = pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "%s has run, but there is no program %q in PATH", i.Argv[0], info.Description.GetProgram()).
			WithHint("put the folder that %s installs programs into in PATH", i.Argv[0])
	}
	return info, err
}

// Refresh asks an agent's CLI for its version again, whatever is remembered.
func (h *Host) Refresh(ctx context.Context, name string) (AgentInfo, error) {
	p, agent, _, err := h.catalog.find(name, nil)
	if err != nil {
		return AgentInfo{}, err
	}
	if agent.Program != "" {
		if path := command.Look(agent.Program, h.opts.Env, h.opts.ProjectDir); path != "" {
			h.catalog.programs.Forget(agent, path)
			h.catalog.programs.Ask(ctx, agent, path, h.opts.Env)
		}
	}
	return h.catalog.describe(p, agent), nil
}

// Isolation is what holds the process of a plugin within bounds on this machine.
// Every plugin has no stdin, a session and a working directory of its own, and no
// descriptor of the host's but the ends of its own pipes.
type Isolation struct {
	// Environment are the names of the variables that it gets. TMPDIR is its working
	// directory.
	Environment []string `json:"environment"`
	// Memory is how many bytes it may hold before it is ended; 0: not bounded here.
	Memory int64 `json:"memory_bytes"`
	// Descriptors is how many it may have, and cannot raise; 0: not bounded here.
	Descriptors uint64 `json:"descriptors"`
	// NoNewPrivileges: set-user-ID programs give it nothing.
	NoNewPrivileges bool `json:"no_new_privileges"`
	// Landlock is the version of the kernel's interface of that name, which keeps it from
	// changing files outside its working directory; 0: the kernel does not offer that.
	Landlock int `json:"landlock_abi"`
	// Signals reports that it can signal its own processes only.
	Signals bool `json:"signals_own_only"`
	// Environments reports that it cannot read the environment and memory of processes
	// that it did not start, the host's among them.
	Environments bool `json:"environments_hidden"`
}

// PluginIsolation says what holds for a plugin whose manifest declares variables, by
// name or pattern, in the environment of a caller. It starts nothing.
func PluginIsolation(env, declared []string) Isolation {
	offered := sandbox.Offered()
	i := Isolation{
		NoNewPrivileges: offered.NoNewPrivileges, Landlock: offered.Landlock, Signals: offered.Signals,
		Environments: offered.Landlock > 0, // its domain ends what ptrace and /proc would show
		Environment:  []string{"TMPDIR"},
	}
	if offered.Limits {
		i.Memory, i.Descriptors = plugins.MaxMemory, sandbox.Files
	}
	for _, variable := range plugins.Env(env, declared) {
		name, _, _ := strings.Cut(variable, "=")
		i.Environment = append(i.Environment, name)
	}
	slices.Sort(i.Environment)
	i.Environment = slices.Compact(i.Environment)
	return i
}
