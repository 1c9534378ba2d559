package main

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for the plugins that the user has installed.
func (adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "codex", "plugin", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Installed []struct {
			PluginID, MarketplaceName, Version string
			Enabled                            bool
			Source                             struct{ Path string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what codex plugin list prints is not understood: %w", err)
	}
	var plugins []*pluginapi.AgentPlugin
	for _, p := range list.Installed {
		plugins = append(plugins, &pluginapi.AgentPlugin{Id: p.PluginID, Version: p.Version, Disabled: !p.Enabled, Source: p.MarketplaceName, Path: p.Source.Path})
	}
	return plugins, nil
}
