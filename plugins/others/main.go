// Command amux-plugin-others is the plugin that serves the agents which have no
// plugin of their own: one folder each.
package main

import (
	"os"

	"github.com/amux-dev/amux/plugins/others/internal/acp"
	"github.com/amux-dev/amux/plugins/others/internal/command"
	"github.com/amux-dev/amux/plugins/others/internal/copilot"
	"github.com/amux-dev/amux/plugins/others/internal/cursor"
	"github.com/amux-dev/amux/plugins/others/internal/demo"
	"github.com/amux-dev/amux/plugins/others/internal/omp"
	"github.com/amux-dev/amux/plugins/others/internal/opencode"
	opencodehttp "github.com/amux-dev/amux/plugins/others/internal/opencode-http"
	"github.com/amux-dev/amux/plugins/others/internal/pi"
	"github.com/amux-dev/amux/plugins/others/internal/qwen"
	"github.com/amux-dev/amux/plugins/others/internal/remote"
	"github.com/amux-dev/amux/sdk"
)

// version is that of amux-plugin.toml.
const version = "0.1.0"

// adapters are the agents of this plugin.
var adapters = []sdk.Adapter{demo.Adapter{}, command.Adapter{}, acp.Adapter{}, copilot.Adapter{}, cursor.Adapter{}, omp.Adapter{}, opencode.Adapter{}, opencodehttp.Adapter{}, pi.Adapter{}, qwen.Adapter{}, remote.Adapter{}}

func main() {
	if len(os.Args) > 1 && os.Args[1] == demo.AgentArg {
		os.Exit(demo.RunAgent(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	sdk.Serve("others", version, adapters...)
}
