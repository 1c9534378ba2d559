package main

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for its extensions.
func (adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "gemini", "extensions", "list", "--output-format", "json")
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		// 0.61.0 prints the list on stderr, behind its warnings.
		text = q.GetExecResults()[0].GetStderr()
		text = text[max(0, bytes.IndexByte(text, '[')):]
	}
	var list []struct {
		Name, Version, Path string
		IsActive            bool
		InstallMetadata     struct{ Source string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what gemini extensions list prints is not understood: %w", err)
	}
	var plugins []*pluginapi.AgentPlugin
	for _, p := range list {
		plugins = append(plugins, &pluginapi.AgentPlugin{Id: p.Name, Version: p.Version, Disabled: !p.IsActive, Source: p.InstallMetadata.Source, Path: p.Path})
	}
	return plugins, nil
}
