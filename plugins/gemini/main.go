// Command amux-plugin-gemini is the adapter for Gemini CLI.
//
// It drives the CLI by the Agent Client Protocol (sdk/acp), where it can ask,
// be interrupted and go on for many turns; acp.go says what it does there in its
// own way. For one prompt without questions there is its stream-json output
// (driver stream-json, stream.go), which alone tells cached tokens. plan.go says
// how the CLI is started, tool.go knows its tools, sessions.go what it leaves on
// disk.
package main

import "github.com/amux-dev/amux/sdk"

// version is the plugin's, as in amux-plugin.toml.
const version = "0.1.0"

func main() { sdk.Serve("gemini", version, adapter{}) }

// adapter knows Gemini CLI. It has no state.
type adapter struct{}

var (
	_ sdk.Adapter       = adapter{}
	_ sdk.Converser     = adapter{}
	_ sdk.SessionLister = adapter{}
	_ sdk.SessionReader = adapter{}
	_ sdk.PluginLister  = adapter{}
)
