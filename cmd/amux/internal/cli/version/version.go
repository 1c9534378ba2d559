// Package version has amux version.
package version

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/pluginapi"
)

// Options are what amux version needs.
type Options struct {
	Out     io.Writer
	Process *app.Process

	JSON bool
}

// NewCmd makes amux version.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Out: a.IO.Out, Process: a.Process}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of amux",
		Long: `Print the version of amux, the commit that it was built from, the version of its plugin
protocol and of Go, and the platform. amux --version does the same.`,
		Example: "  amux version\n  amux version --json | jq -r .version",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return version(o) }),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func version(o *Options) error {
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(map[string]string{
			"version": o.Process.Version, "commit": o.Process.Commit, "date": o.Process.Date, "protocol": protocol(),
			"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := io.WriteString(o.Out, Line(o.Process))
	return err
}

// Line is what amux version and amux --version print.
func Line(p *app.Process) string {
	built := ""
	if p.Commit != "" {
		built = fmt.Sprintf("commit %s of %s, ", p.Commit, p.Date)
	}
	return fmt.Sprintf("amux %s (%splugin protocol %s, %s, %s/%s)\n", p.Version, built, protocol(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func protocol() string {
	return fmt.Sprintf("%d.%d", pluginapi.ProtocolMajor, pluginapi.ProtocolMinor)
}
