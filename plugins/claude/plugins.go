package main

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for the plugins that the user has installed.
func (adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "claude", "plugin", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		ID, Version, Scope, InstallPath, ReadFromFolder string
		Enabled                                         bool
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what claude plugin list prints is not understood: %w", err)
	}
	var plugins []*pluginapi.AgentPlugin
	for _, p := range list {
		source := p.Scope
		if p.ReadFromFolder != "" {
			source = p.ReadFromFolder
		}
		plugins = append(plugins, &pluginapi.AgentPlugin{Id: p.ID, Version: p.Version, Disabled: !p.Enabled, Source: source, Path: p.InstallPath})
	}
	return plugins, nil
}
