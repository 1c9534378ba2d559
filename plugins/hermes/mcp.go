package main

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

type mcpEntry struct {
	Command string            `yaml:"command,omitempty"`
	Args    []string          `yaml:"args,omitempty"`
	Env     map[string]string `yaml:"env,omitempty"`
	URL     string            `yaml:"url,omitempty"`
	Headers map[string]string `yaml:"headers,omitempty"`
}

// McpServers reads and edits the servers as hermes mcp does, which starts a server before it
// adds it, and asks.
func (adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.YAML(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) {
		if s.GetTransport() == mcp.SSE {
			return nil, sdk.Cannot(q.GetAgent(), "mcp transport sse", "it has stdio and http")
		}
		return mcpEntry{s.GetCommand(), s.GetArgs(), s.GetEnv(), s.GetUrl(), s.GetHeaders()}, nil
	}, "mcp_servers")
}
