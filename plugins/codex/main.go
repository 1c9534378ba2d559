// Command amux-plugin-codex is the adapter for OpenAI's Codex CLI.
//
// It drives the CLI by `codex app-server`: JSON-RPC, one object a line, on stdio.
// The files follow one line of text on its way: plan.go says how the CLI is
// started, conversation.go speaks the protocol, items.go and approval.go turn
// what the agent does and asks into events, failure.go tells errors apart.
// exec.go is the other driver, `codex exec --json`, which runs one turn and asks
// nobody. sessions.go and rollout.go read what the CLI left on disk.
package main

import "github.com/amux-dev/amux/sdk"

// version is the plugin's, as in amux-plugin.toml.
const version = "0.1.0"

func main() { sdk.Serve("codex", version, adapter{}) }

// adapter knows Codex. It has no state: all of a run's is in its conversation.
type adapter struct{}

var (
	_ sdk.Adapter       = adapter{}
	_ sdk.Converser     = adapter{}
	_ sdk.AuthDetector  = adapter{}
	_ sdk.SessionLister = adapter{}
	_ sdk.SessionReader = adapter{}
	_ sdk.PluginLister  = adapter{}
)
