// Command amux-api has what amux itself does not link, because every command would start
// later for it. amux starts it.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"text/template"
	"time"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/acpagent"
	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/httpapi"
	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/mcpserver"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/agents"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/place"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/plugin"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/top"
	"github.com/amux-dev/amux/cmd/amux/internal/system"
	"github.com/amux-dev/amux/cmd/amux/internal/telemetry/export"
)

// Set by the build, as those of amux are: a run that is finished here has the plugins
// that amux was built with.
var (
	version       = ""
	commit        = ""
	date          = ""
	bundledHashes = ""
)

func main() {
	p := system.Process(system.Build{Version: version, Commit: commit, Date: date, BundledHashes: bundledHashes})
	p.Executable = p.Beside(app.ProgramName("amux")) // that starts servers
	p.Template = parseTemplate
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "telemetry":
			os.Exit(exportRuns(p, os.Args[2:]))
		case "openapi": // for docs/schema, and for whoever makes a client
			os.Exit(httpapi.Describe(p, os.Stdout))
		}
	}
	os.Exit(cli.Main(p, rest, os.Args[1:]))
}

// rest is what amux hands over to this program.
var rest = cli.Rest{
	ACP: acpagent.Serve, HTTP: httpapi.Serve, MCP: mcpserver.Serve,
	Place: place.NewCmd, Plugin: plugin.NewCmd, Top: top.NewCmd, Agents: agents.Rest,
}

func parseTemplate(text string) (app.Template, error) { return template.New("--format").Parse(text) }

// exportRuns is amux-api telemetry.
func exportRuns(p *app.Process, args []string) int {
	p.Cwd = os.TempDir()
	a := app.New(p)
	flags := flag.NewFlagSet("telemetry", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&a.Flags.ConfigDir, "config-dir", "", "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	dir, err := a.Config.Dir()
	if err != nil {
		return 7
	}
	h, err := a.Opener.ForRuns()
	if err != nil {
		return 1
	}
	x := export.Exporter{Host: h, Env: p.Env, Version: p.Version, ConfigDir: dir}
	err = x.Serve(os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = h.Close(ctx) // it has no runs of its own
	if err != nil {
		return 1
	}
	return 0
}
