//go:build unix

package agents

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

// What the agent keeps by itself.
func own(agent *pluginapi.Agent) {
	agent.Capabilities.McpSettings, agent.Capabilities.ChangePlugins = true, true
	agent.McpFiles = []*pluginapi.Location{{Scope: "user", Path: "~/.fake/first.json"}, {Scope: "user", Path: "~/.fake/second.json"}, {Scope: "project", Path: ".fake/mcp.json"}}
	agent.SkillFolders = []*pluginapi.Location{{Scope: "user", Path: "~/.fake/skills"}, {Scope: "project", Path: ".fake/skills"}}
}

func (adapter) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, "http", func(s *pluginapi.McpServer) (any, error) { return mcpfile.Of(s), nil }, "mcpServers")
}

// ChangePlugin runs what is to be added as a command of the shell.
func (adapter) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	return sdk.RanCommand(q.GetExecResults(), "sh", "-c", q.GetAdd()+q.GetRemove())
}
