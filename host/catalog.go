package host

import (
	"cmp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/host/internal/program"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
)

// catalog knows the agents: those that plugins bring, and the user's own.
type catalog struct {
	opts     *Options
	registry *registry.Registry
	programs program.Versions
}

// find finds an agent and its plugin: one that a plugin brings, or one of the
// user's own, which launch or Options.Agents give a command.
func (c *catalog) find(name string, launch *Launch) (registry.Plugin, *pluginapi.Agent, *Launch, error) {
	if own, ok := c.opts.Agents[name]; ok && launch == nil {
		launch = &own
	}
	plugin, agent, err := c.registry.Agent(name)
	if launch == nil {
		if err == nil && agent.Configured {
			err = invalid("agent %s has no command of its own", name).
				WithHint("give it one in config.toml: [agents.NAME] with adapter = %q and command = \"…\"; then: amux run NAME", name)
		}
		return plugin, agent, nil, err
	}
	if err == nil && !agent.Configured {
		return plugin, nil, nil, configError("there is an agent %s already", name)
	}
	plugin, base, err := c.registry.Agent(launch.Adapter)
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
	agent = proto.CloneOf(base)
	agent.Id, agent.DisplayName, agent.Configured, agent.Configurable = name, "", false, false
	agent.Versions, agent.Installs = nil, nil // those of another program
	if len(launch.Argv) > 0 {
		agent.Program = launch.Argv[0]
	}
	return plugin, agent, launch, nil
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
		info.Program = program.Look(agent.Program, c.opts.Env, cwd)
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
