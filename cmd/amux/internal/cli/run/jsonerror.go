package run

import (
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/ndjson"
	"github.com/amux-dev/amux/pluginapi"
)

// reportJSON writes to stdout, as an event of no run, why none was started.
func reportJSON(out io.Writer, err error) {
	if _, reported := errors.AsType[app.ExitError](err); reported || err == nil {
		return
	}
	ndjson.WriteError(out, "", pluginapi.AsError(err))
}

// flagError reports an invalid flag as reportJSON does, if the command line has --json:
// perhaps behind that flag, where it was not read.
func flagError(a *app.App) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		err = app.FlagError(cmd, err)
		if slices.Contains(a.Args, "--json") {
			reportJSON(a.IO.Out, err)
		}
		return err
	}
}
