package cursor

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "~/.cursor/mcp.json"}, {Scope: "project", Path: ".cursor/mcp.json"}}
}

// McpServers reads and edits the servers as Cursor's documentation has them.
func (Adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) {
		entry := mcpfile.Of(s)
		entry.Type = "" // by address it finds out
		return entry, nil
	}, "mcpServers")
}
