package run

import (
	"errors"
	"io"

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
