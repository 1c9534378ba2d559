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
	Version string

	JSON bool
}

// NewCmd makes amux version.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{Out: a.IO.Out, Version: a.Version}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of amux",
		Long:    "Print the version of amux, of its plugin protocol and of Go, and the platform.",
		Example: "  amux version\n  amux version --json | jq -r .version",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return version(o) }),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func version(o *Options) error {
	protocol := fmt.Sprintf("%d.%d", pluginapi.ProtocolMajor, pluginapi.ProtocolMinor)
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(map[string]string{
			"version": o.Version, "protocol": protocol,
			"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintf(o.Out, "amux %s (plugin protocol %s, %s, %s/%s)\n",
		o.Version, protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
