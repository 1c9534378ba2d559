package qwen

import (
	"context"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/pattern"
)

// extensionLine begins an extension: "✓ hello (1.2.3)".
var extensionLine = pattern.New(`^\S+ (\S+) \(([^()]*)\)$`)

// ListPlugins asks the CLI for its extensions, which it prints for people: a line with
// name and version, and indented facts below it.
func (Adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "qwen", "extensions", "list")
	if err != nil {
		return nil, err
	}
	var plugins []*pluginapi.AgentPlugin
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n ")
		if m := extensionLine.FindStringSubmatch(line); m != nil {
			plugins = append(plugins, &pluginapi.AgentPlugin{Id: m[1], Version: m[2]})
			continue
		}
		fact, value, ok := strings.Cut(strings.TrimPrefix(line, " "), ": ")
		if !ok || len(plugins) == 0 {
			continue
		}
		switch p := plugins[len(plugins)-1]; fact {
		case "Description":
			p.Description = value
		case "Path":
			p.Path = value
		case "Source":
			p.Source, _, _ = strings.Cut(value, " (Type: ")
		case "Enabled (User)", "Enabled (Workspace)":
			p.Disabled = p.Disabled || value == "false"
		}
	}
	return plugins, nil
}
