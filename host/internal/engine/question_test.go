package engine

import (
	"encoding/json"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

func TestGuessKind(t *testing.T) {
	for _, test := range []struct{ tool, detail, input, want string }{
		{"Bash", "ls", "", pluginapi.ToolShell},
		{"run", "ls", `{"command":"ls"}`, pluginapi.ToolShell},
		{"run", "list the files", `{"command":"ls"}`, pluginapi.ToolCommand},
		{"run", "ls", `{"command":["bash","-lc","ls"]}`, pluginapi.ToolCommand},
		{"execute", "ls", "", pluginapi.ToolCommand},
		{"PowerShell", "ls", "", pluginapi.ToolCommand},
		{"Write", "x", `{"path":"x"}`, ""},
	} {
		if got := guessKind(test.tool, test.detail, json.RawMessage(test.input)); got != test.want {
			t.Errorf("%v: %q", test, got)
		}
	}
}
