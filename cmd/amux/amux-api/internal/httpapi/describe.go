package httpapi

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// Describe writes the OpenAPI document and returns an exit code. The version is that of the
// API, so that the document changes with that alone.
func Describe(p *app.Process, to io.Writer) int {
	described := *p
	described.Version = "1"
	_, doc := handler(&api{app: app.New(&described)})
	data, err := json.Marshal(doc)
	if err != nil {
		return 1
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return 1
	}
	out.WriteByte('\n')
	if _, err := out.WriteTo(to); err != nil {
		return 1
	}
	return 0
}
