package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// worded are the events whose text may quote what an agent wrote to its terminal, and
// is shown to people as amux's own words.
var worded = map[pluginapi.Type]bool{
	code.EventError: true, code.EventAuthError: true, code.EventRateLimitError: true, code.EventRetry: true, code.EventDebug: true,
}

// sanitize takes out of text what a terminal obeys, and what reorders or hides other
// text; tabs and line feeds stay.
func sanitize(text string) string { return printable.String(text) }

// sanitizeStrings is sanitize for every string of a JSON object. Data that is not well formed
// stays as it is: the event log refuses it.
func sanitizeStrings(object []byte) []byte {
	plain := func(r rune) bool { return r >= ' ' && r <= '~' || r == '\t' || r == '\n' }
	if !bytes.Contains(object, []byte(`\u`)) && !bytes.Contains(object, []byte(`\r`)) &&
		!bytes.ContainsFunc(object, func(r rune) bool { return !plain(r) }) {
		return object
	}
	var out []byte
	for i := 0; i < len(object); i++ {
		if object[i] != '"' {
			out = append(out, object[i])
			continue
		}
		end := i + 1
		for end < len(object) && object[end] != '"' {
			if object[end] == '\\' {
				end++
			}
			end++
		}
		var text string
		if end >= len(object) || json.Unmarshal(object[i:end+1], &text) != nil {
			return object
		}
		if clean := sanitize(text); clean != text {
			out = pluginapi.AppendString(out, clean)
		} else {
			out = append(out, object[i:end+1]...)
		}
		i = end
	}
	return out
}

// flagsOf are the names of the flags among arguments.
func flagsOf(args []string) []string {
	var flags []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if len(name) > 1 && name[0] == '-' && len(name) <= maxFlag && !strings.ContainsAny(name, " \t\r\n") {
			flags = append(flags, name)
		}
	}
	return flags
}

// maxFlag bounds the name of a flag; what is longer is text that begins with a dash.
const maxFlag = 64
