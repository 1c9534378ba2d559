package main

import (
	"context"
	"path/filepath"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// mcpFiles are the settings of the user, and of a project, which count once the CLI trusts
// its folder.
func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${GEMINI_CLI_HOME:-~}/.gemini/settings.json"}, {Scope: "project", Path: ".gemini/settings.json"}}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${GEMINI_CLI_HOME:-~}/.gemini/skills"}, {Scope: "project", Path: ".gemini/skills"}}
}

// McpServers reads and edits the servers as gemini mcp does.
func (adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.SSE, func(s *pluginapi.McpServer) (any, error) {
		entry := mcpfile.Of(s)
		if entry.Type == mcp.Stdio {
			entry.Type = ""
		}
		return entry, nil
	}, "mcpServers")
}

// ChangePlugin takes an address, as gemini extensions install does, or a folder, which is
// linked: to copy one the CLI asks a person for trust. Who asks amux for it has agreed to
// what an extension may do.
func (adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "gemini", "extensions", "uninstall", q.GetRemove())
	}
	how := "install"
	if filepath.IsAbs(q.GetAdd()) {
		how = "link"
	}
	return sdk.RanCommand(q.GetExecResults(), "gemini", "extensions", how, q.GetAdd(), "--consent")
}
