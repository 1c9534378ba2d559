package main

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// mcpFiles are where claude mcp add writes. The scope local is that of a folder, in the
// user's file.
func mcpFiles() []*pluginapi.Location {
	const user = "${CLAUDE_CONFIG_DIR:-~}/.claude.json"
	return []*pluginapi.Location{{Scope: "user", Path: user}, {Scope: "local", Path: user}, {Scope: "project", Path: ".mcp.json"}}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${CLAUDE_CONFIG_DIR:-~/.claude}/skills"}, {Scope: "project", Path: ".claude/skills"}}
}

// McpServers reads and edits the servers as claude mcp does.
func (adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	keys := []string{"mcpServers"}
	if q.GetFile().GetScope() == "local" {
		keys = []string{"projects", q.GetCaller().GetCwd(), "mcpServers"}
	}
	return mcpfile.JSON(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) { return mcpfile.Of(s), nil }, keys...)
}

// ChangePlugin takes plugins as NAME@MARKETPLACE, of a marketplace that the CLI knows.
func (adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "claude", "plugin", "uninstall", q.GetRemove())
	}
	return sdk.RanCommand(q.GetExecResults(), "claude", "plugin", "install", q.GetAdd())
}
