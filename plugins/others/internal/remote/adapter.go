// Package remote is the adapter for another amux: on another machine, in a container,
// or simply another process here. It starts amux run there with its lines both ways,
// and carries them through: events come out as the agent there has given them, and
// prompts, answers and interrupts go in.
//
// plan.go is the command line, conversation.go the lines.
package remote

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

const (
	agentID = "amux-remote"
	// agentEnv names the agent that the other amux runs.
	agentEnv     = "AMUX_REMOTE_AGENT"
	defaultAgent = "claude"

	// The clock of the most patient agent; that of the other amux is off.
	inactivitySeconds = 900
)

// Adapter knows amux. It has no state.
type Adapter struct{}

var (
	_ sdk.Adapter   = Adapter{}
	_ sdk.Converser = Adapter{}
)

// Describe implements sdk.Adapter.
func (Adapter) Describe() *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id:           agentID,
		DisplayName:  "amux elsewhere",
		Summary:      "An agent of another amux, over ssh for example",
		Program:      "amux",
		Configurable: true,
		Versions: &pluginapi.Versions{
			Minimum: "0.1.0", Tested: "0.1.0", Args: []string{"version"}, Pattern: `^amux (\d+\.\d+\.\d+)`,
		},
		Platforms: []string{"linux", "darwin", "windows"},
		// What the agent there cannot do is refused there, before it is started.
		Capabilities: &pluginapi.Capabilities{
			Resume: true, ContinueLast: true, Fork: true, NoSession: true, MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true,
			Approvals: true, EditApprovals: true, Questions: true, Interrupt: true, Model: true, SetModel: true, SystemAppend: true, SystemReplace: true,
			Mcp: true, AddDirs: true, MaxTurns: true, MaxBudget: true, JsonSchema: true, AttachFiles: true, AttachImages: true, Subagents: true,
		},
		Elsewhere:       true,
		ConfigLocations: []string{"~/.agent-mux/config.toml, here and there"},
		Notes: []string{
			agentEnv + " names the agent that the other amux runs; it is " + defaultAgent + " if that is not set. Signing in, installing and sessions are matters of the other amux.",
			"By itself it runs the amux that is in PATH. Another is named in ~/.agent-mux/config.toml: [agents.box] with adapter = \"amux-remote\" and command = [\"ssh\", \"-T\", \"box\", \"amux\"]. Then: amux run box \"…\".",
			"Words after ssh go through a shell there and are quoted for it. Files, variables and tool servers are not carried to another machine.",
			"When the connection breaks the other amux ends its run.",
		},
		CallerEnv:         []string{agentEnv},
		InactivitySeconds: inactivitySeconds,
	}
	for _, level := range []string{"low", "medium", "high", "max"} {
		agent.Efforts = append(agent.Efforts, &pluginapi.Effort{Level: level, Native: level})
	}
	for _, t := range pluginapi.Types() {
		if !pluginapi.HostOnly(t) {
			agent.EventTypes = append(agent.EventTypes, string(t))
		}
	}
	return agent
}
