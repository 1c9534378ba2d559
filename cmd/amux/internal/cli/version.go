package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/pluginapi"
)

func newVersion(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of amux",
		Args:  exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			protocol := fmt.Sprintf("%d.%d", pluginapi.ProtocolMajor, pluginapi.ProtocolMinor)
			if asJSON {
				return json.NewEncoder(s.app.IO.Out).Encode(map[string]string{
					"version": s.app.Version, "protocol": protocol,
					"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(s.app.IO.Out, "amux %s (plugin protocol %s, %s, %s/%s)\n",
				s.app.Version, protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
