package host

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// adapter is the agent that the plugin knows: for one of the user's own, that whose
// adapter drives it.
func (s *RunSpec) adapter() string {
	if s.Launch != nil {
		return s.Launch.Adapter
	}
	return s.Agent
}

// adapterOf is adapter for an agent by name.
func (h *Host) adapterOf(name string) string {
	if own, ok := h.opts.Agents[name]; ok {
		return own.Adapter
	}
	return name
}

func (l *Launch) proto() *pluginapi.Launch {
	if l == nil {
		return nil
	}
	return &pluginapi.Launch{Line: l.Line, Argv: l.Argv}
}

// findAgent finds an agent and its plugin: one that a plugin brings, or one of the
// user's own, which launch or Options.Agents give a command.
func (h *Host) findAgent(name string, launch *Launch) (registry.Plugin, *pluginapi.Agent, *Launch, error) {
	if own, ok := h.opts.Agents[name]; ok && launch == nil {
		launch = &own
	}
	plugin, agent, err := h.registry.Agent(name)
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
	plugin, base, err := h.registry.Agent(launch.Adapter)
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

func configError(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodeConfig, format, args...).WithHint("see [agents.NAME] in config.toml")
}

// shellCommand is the program and arguments by which a shell runs a line; args are its
// positional arguments, so no text of theirs is ever part of the line.
func shellCommand(line string, args []string) (program string, argv []string, ok bool) {
	return shell, append(append(append([]string(nil), shellFlags...), line), positional(args)...), len(args) == 0 || shellArgs
}
