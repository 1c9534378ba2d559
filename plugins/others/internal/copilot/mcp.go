package copilot

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{
		{Scope: "user", Path: "${COPILOT_HOME:-~/.copilot}/mcp-config.json"},
		{Scope: "project", Path: ".mcp.json"}, {Scope: "project", Path: ".github/mcp.json"},
	}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${COPILOT_HOME:-~/.copilot}/skills"}, {Scope: "project", Path: ".github/skills"}}
}

// McpServers reads and edits the servers as copilot mcp does.
func (Adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) {
		entry := struct {
			Tools []string `json:"tools"`
			mcpfile.Standard
		}{[]string{"*"}, mcpfile.Of(s)}
		if entry.Type == mcp.Stdio && q.GetFile().GetScope() == "user" { // .mcp.json is shared with agents that say stdio
			entry.Type = "local"
		}
		return entry, nil
	}, "mcpServers")
}

// ChangePlugin takes what copilot plugin install does.
func (Adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "copilot", "plugin", "uninstall", q.GetRemove())
	}
	return sdk.RanCommand(q.GetExecResults(), "copilot", "plugin", "install", q.GetAdd())
}
