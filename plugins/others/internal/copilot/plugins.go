package copilot

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for its plugins, with those that it brings.
func (Adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "copilot", "plugin", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name, Marketplace, Version, Source string
		Enabled                            bool
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what copilot plugin list prints is not understood: %w", err)
	}
	var plugins []*pluginapi.AgentPlugin
	for _, p := range list {
		source := p.Source
		if p.Marketplace != "" {
			source = p.Marketplace
		}
		plugins = append(plugins, &pluginapi.AgentPlugin{Id: p.Name, Version: p.Version, Disabled: !p.Enabled, Source: source})
	}
	return plugins, nil
}
