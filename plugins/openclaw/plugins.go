package main

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for its plugins, without those that it brings along.
func (adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "openclaw", "plugins", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Plugins []struct {
			ID, Version, Description, Origin, RootDir string
			Enabled                                   bool
			Trust                                     struct{ InstallSource string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what openclaw plugins list prints is not understood: %w", err)
	}
	var plugins []*pluginapi.AgentPlugin
	for _, p := range list.Plugins {
		if p.Origin == "bundled" {
			continue
		}
		plugins = append(plugins, &pluginapi.AgentPlugin{Id: p.ID, Version: p.Version, Description: p.Description, Disabled: !p.Enabled, Source: p.Trust.InstallSource, Path: p.RootDir})
	}
	return plugins, nil
}

// ChangePlugin takes what openclaw plugins install does. Who asks for it has agreed to where
// the plugin comes from, and to what it may do.
func (adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "openclaw", "plugins", "uninstall", q.GetRemove(), "--force")
	}
	return sdk.RanCommand(q.GetExecResults(), "openclaw", "plugins", "install", q.GetAdd(), "--force", "--accept-capabilities")
}
