// Command amux-plugin-openclaw is the adapter for OpenClaw.
//
// It runs one prompt a process: by `agent exec`, which keeps nothing, or by `agent
// --local` with a session that can go on (the driver local). Both print one document
// of JSON when all is over (document.go). With the driver acp it speaks to a gateway
// that the user already runs, by the Agent Client Protocol (acp.go): there text
// streams, tools are told and commands can be asked about. On a terminal it is
// OpenClaw's own screen (screen.go). plan.go says how the CLI is started, sessions.go
// asks it for its sessions.
package main

import "github.com/amux-dev/amux/sdk"

// version is the plugin's, as in amux-plugin.toml.
const version = "0.1.0"

func main() { sdk.Serve("openclaw", version, adapter{}) }

// adapter knows OpenClaw. It has no state.
type adapter struct{}

var (
	_ sdk.Adapter       = adapter{}
	_ sdk.Converser     = adapter{}
	_ sdk.SessionLister = adapter{}
	_ sdk.ModelLister   = adapter{}
)
