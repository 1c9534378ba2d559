package qwen

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${QWEN_HOME:-~/.qwen}/settings.json"}, {Scope: "project", Path: ".qwen/settings.json"}}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${QWEN_HOME:-~/.qwen}/skills"}, {Scope: "project", Path: ".qwen/skills"}}
}

// McpServers reads and edits the servers as qwen mcp does.
func (Adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.SSE, func(s *pluginapi.McpServer) (any, error) {
		entry := mcpfile.Of(s)
		if entry.Type == mcp.HTTP {
			entry.URL, entry.HTTPURL = "", entry.URL
		}
		entry.Type = ""
		return entry, nil
	}, "mcpServers")
}

// ChangePlugin takes what qwen extensions install does. Who asks for it has agreed to what
// an extension may do.
func (Adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "qwen", "extensions", "uninstall", q.GetRemove())
	}
	return sdk.RanCommand(q.GetExecResults(), "qwen", "extensions", "install", q.GetAdd(), "--consent")
}
