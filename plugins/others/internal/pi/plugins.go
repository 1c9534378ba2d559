package pi

import (
	"context"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListPlugins asks the CLI for its packages, which it prints for people: below a
// heading one of them, and below that where it lies.
func (Adapter) ListPlugins(_ context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "pi", "list")
	if err != nil {
		return nil, err
	}
	var plugins []*pluginapi.AgentPlugin
	heading := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n ")
		switch name := strings.TrimLeft(line, " "); {
		case name == "":
		case strings.HasPrefix(line, "    ") && len(plugins) > 0:
			plugins[len(plugins)-1].Path = name
		case strings.HasPrefix(line, "  ") && heading != "":
			plugins = append(plugins, &pluginapi.AgentPlugin{Id: name, Source: heading})
		case strings.HasSuffix(line, ":"):
			heading = strings.ToLower(strings.TrimSuffix(line, ":"))
		}
	}
	return plugins, nil
}
