package ndjson

import (
	"io"
	"os"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// AtOnce is out for events that are written one by one, as they come.
func AtOnce(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok {
		return rawio.NewOutput(f)
	}
	return out
}
