// Package ndjson is what amux itself writes for programs that read events from its
// stdout, one JSON object a line.
package ndjson

import (
	"cmp"
	"fmt"
	"io"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Hint returns the way out of an error: its own, that of the limit it has reached, or its
// code's; "" where none is known.
func Hint(e *pluginapi.Error) string {
	_, limit := fault.Limit(e)
	return cmp.Or(e.Hint, limit, e.Code.Info().Hint)
}

// WriteError writes an error as an event without a number: of the run, or of none if
// runID is empty.
func WriteError(out io.Writer, runID string, e *pluginapi.Error) {
	event, err := pluginapi.AppendPayload(nil, pluginapi.ErrorEvent{
		Code: e.Code, Message: e.Error(), Hint: Hint(e),
	})
	if err != nil {
		return
	}
	run := ""
	if runID != "" {
		run = fmt.Sprintf(`"run_id":%q,`, runID)
	}
	_, _ = fmt.Fprintf(out, "{\"type\":\"error\",%s%s\n", run, event[1:])
}
