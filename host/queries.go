package host

import (
	"context"
	"os"
	"path/filepath"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/internal/program"
	"github.com/amux-dev/amux/pluginapi"
)

// queries start the plugins that answer questions about an agent which has no run.
type queries struct{ host *Host }

// capable starts the plugin of an agent that has a capability.
func (q *queries) capable(ctx context.Context, name, what string, can func(*pluginapi.Capabilities) bool) (*adapter.Process, *pluginapi.Agent, error) {
	plugin, agent, _, err := q.host.catalog.find(name, nil)
	if err != nil {
		return nil, nil, err
	}
	if !can(agent.GetCapabilities()) {
		return nil, nil, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s: its adapter cannot %s", name, what).
			WithHint("amux agents list shows the agents; amux agents info AGENT what each can do")
	}
	if err := q.host.prepare(); err != nil {
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
func (q *queries) command(dir string) program.Command {
	return program.Command{Env: q.host.opts.Env, Cwd: q.host.opts.ProjectDir, Time: program.StoreTime, Dir: dir}
}

// askable is capable for what the agent's own command is needed for.
func (q *queries) askable(ctx context.Context, name, what string, can func(*pluginapi.Capabilities) bool) (*adapter.Process, *pluginapi.Agent, error) {
	process, agent, err := q.capable(ctx, name, what, can)
	if err == nil && agent.Program != "" && program.Look(agent.Program, q.host.opts.Env, q.host.opts.ProjectDir) == "" {
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
