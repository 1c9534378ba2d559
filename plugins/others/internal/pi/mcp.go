package pi

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// mcpFiles are those of the user, and of a project, which count once the CLI trusts it.
func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${PI_CODING_AGENT_DIR:-~/.pi/agent}/mcp.json"}, {Scope: "project", Path: ".pi/mcp.json"}}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${PI_CODING_AGENT_DIR:-~/.pi/agent}/skills"}, {Scope: "project", Path: ".pi/skills"}}
}

// McpServers reads and edits the servers as pi mcp does.
func (Adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) {
		if s.GetTransport() == mcp.SSE {
			return nil, sdk.Cannot(q.GetAgent(), "mcp transport sse", "it has stdio and http")
		}
		entry := mcpfile.Of(s)
		entry.Type = ""
		return entry, nil
	}, "mcpServers")
}

// ChangePlugin takes what pi install does.
func (Adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "pi", "remove", q.GetRemove())
	}
	return sdk.RanCommand(q.GetExecResults(), "pi", "install", q.GetAdd())
}
