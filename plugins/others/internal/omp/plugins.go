package omp

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for its plugins.
func (Adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "omp", "plugin", "list", "--json")
	if err != nil {
		return nil, err
	}
	type plugin struct {
		ID, Name, Version, Path string
		Enabled                 *bool
	}
	var list struct{ NPM, Marketplace []plugin }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what omp plugin list prints is not understood: %w", err)
	}
	var plugins []*pluginapi.AgentPlugin
	take := func(source string, list []plugin) {
		for _, p := range list {
			id := p.ID
			if id == "" {
				id = p.Name
			}
			plugins = append(plugins, &pluginapi.AgentPlugin{
				Id: id, Version: p.Version, Disabled: p.Enabled != nil && !*p.Enabled, Source: source, Path: p.Path,
			})
		}
	}
	take("npm", list.NPM)
	take("marketplace", list.Marketplace)
	return plugins, nil
}
