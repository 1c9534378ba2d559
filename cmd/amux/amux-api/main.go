// Command amux-api has what amux itself does not link, because every command would start
// later for it. amux starts it.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/telemetry/export"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Set by the build, as those of amux are: a run that is finished here has the plugins
// that amux was built with.
var (
	version       = ""
	bundledHashes = ""
)

func main() {
	rawio.CloseOnExec()
	if len(os.Args) < 2 || os.Args[1] != "telemetry" {
		fmt.Fprintln(os.Stderr, "amux-api is started by amux; see: amux --help")
		os.Exit(2)
	}
	os.Exit(exportRuns(os.Args[2:]))
}

// exportRuns is amux-api telemetry.
func exportRuns(args []string) int {
	home, _ := os.UserHomeDir()
	executable, _ := os.Executable()
	p := &app.Process{
		IO: iostreams.System(os.Getenv), Env: process.Environ(os.Environ()), Home: home, Cwd: os.TempDir(), Executable: executable,
		Version: cmp.Or(version, "dev"), BundledHashes: app.ParseHashes(bundledHashes), NewHost: app.NewHost,
	}
	p.Executable = p.Beside(app.ProgramName("amux")) // that starts servers
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
