package host

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/amux-dev/amux/host/internal/program"
	"github.com/amux-dev/amux/host/registry"
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
	readable := slices.DeleteFunc(slices.Clone(plugins), registry.Plugin.IsLock)
	for _, p := range plugins {
		if p.Err != nil {
			if chosen, _, err := registry.Choose(plugins, p.Name); err == nil && chosen.Name != p.Name {
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
			if chosen, _, err := registry.Choose(readable, agent.Id); err == nil && chosen.Name == p.Name {
				byID[agent.Id] = h.catalog.describe(p, agent)
			}
		}
	}
	for name := range h.opts.Agents {
		info, err := h.Agent(ctx, name)
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
	p, agent, launch, err := h.catalog.find(name, nil)
	if err != nil {
		return AgentInfo{}, err
	}
	info := h.catalog.describe(p, agent)
	info.Launch = launch
	if !info.Bundled {
		for _, claim := range registry.Claims(h.registry.List()) {
			if claim.Agent == agent.Id && claim.TakenOver {
				info.InPlaceOf = claim.Others
			}
		}
	}
	return info, nil
}

// DetectAuth asks the adapter whether the user is signed in; it starts the plugin. Of an
// adapter that knows no more than its auth probes they are the answer.
func (h *Host) DetectAuth(ctx context.Context, name string) (*pluginapi.AuthResponse, error) {
	plugin, agent, _, err := h.catalog.find(name, nil)
	if err != nil {
		return nil, err
	}
	if err := h.prepare(); err != nil {
		return nil, err
	}
	verified, err := h.registry.Verify(plugin)
	if err != nil {
		return nil, err
	}
	process, err := h.plugins.Get(ctx, verified)
	if err != nil {
		return nil, err
	}
	world := caller(agent, h.opts.Env, h.opts.ProjectDir, nil)
	resp, err := process.DetectAuth(ctx, &pb.DetectAuthRequest{Agent: h.catalog.adapter(name), Caller: world}, program.Command{Env: h.opts.Env}.Exec)
	if errors.Is(err, pluginapi.CodeCapability) {
		return &pluginapi.AuthResponse{
			States:   authprobe.Evaluate(agent.AuthProbes, world, authprobe.Options{}),
			Guidance: agent.AuthGuidance,
		}, nil
	}
	h.plugins.Hangs(ctx, process, err)
	return resp, err
}

// AgentPlugins lists the agent's own plugins, or extensions, by its own command. It
// starts the plugin of amux, and changes nothing.
func (h *Host) AgentPlugins(ctx context.Context, name string) ([]*pluginapi.AgentPlugin, error) {
	process, agent, err := h.queries.askable(ctx, name, "list plugins", (*pluginapi.Capabilities).GetListPlugins)
	if err != nil {
		return nil, err
	}
	list, err := process.ListPlugins(ctx, &pluginapi.PluginsQuery{
		Agent: h.catalog.adapter(name), Caller: caller(agent, h.opts.Env, h.opts.ProjectDir, nil),
	}, h.queries.command("").Exec)
	h.plugins.Hangs(ctx, process, err)
	return list, err
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
	}, h.queries.command("").Exec)
	h.plugins.Hangs(ctx, process, err)
	return list, err
}
