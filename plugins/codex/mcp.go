package main

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// mcpFiles are the settings of the user, and of a project, which count once the CLI trusts
// the project.
func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${CODEX_HOME:-~/.codex}/config.toml"}, {Scope: "project", Path: ".codex/config.toml"}}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${CODEX_HOME:-~/.codex}/skills"}, {Scope: "project", Path: ".codex/skills"}}
}

// mcpEntry is the table of a server.
type mcpEntry struct {
	Command string            `toml:"command,omitempty"`
	Args    []string          `toml:"args,omitempty"`
	Env     map[string]string `toml:"env,inline,omitempty"`
	URL     string            `toml:"url,omitempty"`
	Headers map[string]string `toml:"http_headers,inline,omitempty"`
}

// McpServers reads and edits the tables that codex mcp does.
func (adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.TOML(q, func(s *pluginapi.McpServer) (any, error) {
		if s.GetTransport() == mcp.SSE {
			return nil, sdk.Cannot(q.GetAgent(), "mcp transport sse", "it has stdio and http")
		}
		return mcpEntry{s.GetCommand(), s.GetArgs(), s.GetEnv(), s.GetUrl(), s.GetHeaders()}, nil
	}, "mcp_servers")
}

// ChangePlugin takes plugins as NAME@MARKETPLACE, of a marketplace that the CLI knows.
func (adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	if q.GetRemove() != "" {
		return sdk.RanCommand(q.GetExecResults(), "codex", "plugin", "remove", q.GetRemove())
	}
	return sdk.RanCommand(q.GetExecResults(), "codex", "plugin", "add", q.GetAdd())
}
