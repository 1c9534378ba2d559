// Command amux-plugin-claude is the adapter for Claude Code.
//
// It drives the CLI by its stream-json protocol, both ways on stdio: user
// messages, approvals and interrupts go in as JSON lines, everything the agent
// does comes out as JSON lines. The files follow one line of text on its way:
// plan.go says how the CLI is started, conversation.go takes its lines apart,
// stream.go, tool.go, system.go, result.go and control.go say what they mean, and
// sdk/turn makes the events. work.go knows whether the CLI will speak by itself,
// spending.go counts its money, prompt.go writes to its stdin. fast.go reads deltas
// without parsing them, sessions.go what the CLI left on disk.
package main

import "github.com/amux-dev/amux/sdk"

// version is the plugin's, as in amux-plugin.toml.
const version = "0.1.0"

func main() { sdk.Serve("claude", version, adapter{}) }

// adapter knows Claude Code. It has no state: all of a run's is in its
// conversation.
type adapter struct{}

var (
	_ sdk.Adapter       = adapter{}
	_ sdk.Converser     = adapter{}
	_ sdk.AuthDetector  = adapter{}
	_ sdk.SessionLister = adapter{}
	_ sdk.SessionReader = adapter{}
	_ sdk.PluginLister  = adapter{}
)
