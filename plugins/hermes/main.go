// Command amux-plugin-hermes is the adapter for Hermes Agent.
//
// One prompt that may do what it wants is told as lines of JSON (hermes chat --format
// stream-json, stream.go). Where somebody is to be asked, or more prompts may follow,
// it is driven by the Agent Client Protocol (hermes acp, acp.go). plan.go says how
// the CLI is started, tool.go knows its tools, sessions.go reads what it has stored.
package main

import "github.com/amux-dev/amux/sdk"

// version is the plugin's, as in amux-plugin.toml.
const version = "0.1.0"

func main() { sdk.Serve("hermes", version, adapter{}) }

// adapter knows Hermes Agent. It has no state.
type adapter struct{}

var (
	_ sdk.Adapter       = adapter{}
	_ sdk.Converser     = adapter{}
	_ sdk.SessionLister = adapter{}
	_ sdk.SessionReader = adapter{}
)
