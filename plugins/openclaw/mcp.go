package main

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

func mcpFiles() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${OPENCLAW_CONFIG_PATH:-${OPENCLAW_STATE_DIR:-~/.openclaw}/openclaw.json}"}}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${OPENCLAW_STATE_DIR:-~/.openclaw}/skills"}}
}

type mcpEntry struct {
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
}

// McpServers reads and edits the servers as openclaw mcp does.
func (adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.SSE, func(s *pluginapi.McpServer) (any, error) {
		transport := map[string]string{mcp.HTTP: "streamable-http", mcp.SSE: mcp.SSE}[s.GetTransport()]
		return mcpEntry{s.GetCommand(), s.GetArgs(), s.GetEnv(), s.GetUrl(), transport, s.GetHeaders()}, nil
	}, "mcp", "servers")
}
