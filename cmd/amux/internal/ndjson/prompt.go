package ndjson

import (
	"io"
	"os"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Prompt is out for events that are written one by one, as they come.
func Prompt(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok {
		return rawio.NewOutput(f)
	}
	return out
}
