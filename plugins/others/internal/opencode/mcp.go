package opencode

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// mcpFiles are the settings that OpenCode merges; the first is the one that it makes.
func mcpFiles() []*pluginapi.Location {
	const user = "${XDG_CONFIG_HOME:-~/.config}/opencode/"
	return []*pluginapi.Location{
		{Scope: "user", Path: user + "opencode.jsonc"}, {Scope: "user", Path: user + "opencode.json"},
		{Scope: "project", Path: "opencode.json"}, {Scope: "project", Path: "opencode.jsonc"},
	}
}

func skillFolders() []*pluginapi.Location {
	return []*pluginapi.Location{{Scope: "user", Path: "${XDG_CONFIG_HOME:-~/.config}/opencode/skills"}, {Scope: "project", Path: ".opencode/skills"}}
}

// Settings reads and edits OpenCode's settings.
type Settings struct{}

type mcpEntry struct {
	Type        string            `json:"type"`
	Command     []string          `json:"command,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	URL         string            `json:"url,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
}

// McpServers reads and edits the servers as opencode mcp does.
func (Settings) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, mcp.HTTP, func(s *pluginapi.McpServer) (any, error) {
		if s.GetTransport() != mcp.Stdio {
			return mcpEntry{Type: "remote", URL: s.GetUrl(), Headers: s.GetHeaders()}, nil
		}
		return mcpEntry{Type: "local", Command: append([]string{s.GetCommand()}, s.GetArgs()...), Environment: s.GetEnv()}, nil
	}, "mcp")
}
