package omp

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// mcpFiles are omp's own; it reads those of other agents in the project as well.
func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{
		{Scope: "user", Path: "${PI_CODING_AGENT_DIR:-~/.omp/agent}/mcp.json"}, {Scope: "user", Path: "${PI_CODING_AGENT_DIR:-~/.omp/agent}/.mcp.json"},
		{Scope: "project", Path: ".omp/mcp.json"}, {Scope: "project", Path: ".omp/.mcp.json"},
	}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${PI_CODING_AGENT_DIR:-~/.omp/agent}/skills"}, {Scope: "project", Path: ".omp/skills"}}
}

// McpServers reads and edits omp's servers.
func (Adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) { return mcpfile.Of(s), nil }, "mcpServers")
}

// ChangePlugin takes what omp install does.
func (Adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "omp", "plugin", "uninstall", q.GetRemove())
	}
	return sdk.RanCommand(q.GetExecResults(), "omp", "install", q.GetAdd())
}
