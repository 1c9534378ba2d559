package real

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/test/fakemodel"
	"github.com/amux-dev/amux/test/real/toolchain"
)

var qwenRow = agentRow{
	id: "qwen", program: "qwen", env: toolchain.Chat, read: readChat, shell: "run_shell_command", home: qwenHome,
	plan:     "plugins/others/qwen/plan.go",
	unpriced: true, noCacheWrites: true, patience: 3 * time.Minute,
	model: "other-model", mcpTool: "mcp__echo__echo",
	lacks: map[string]string{
		"retry":                   "it makes most failed requests again without a line",
		"rate_limited":            "told only before it waits for a minute",
		"how long to wait":        "told only before it waits for a minute",
		"a retry when overloaded": "it makes most failed requests again without a line",
	},
	na: map[string]string{
		"sub-agent":   "its sub-agents work in the background, and nothing of what they do is printed",
		"max budget":  "it has no limit of money",
		"json schema": "its structured output cannot be used with a conversation on stdin, without which it cannot ask",
		"image":       "images in a prompt were not seen on the wire",
		"5 MB prompt": "it refuses what it takes for more than a context, unasked, and nothing raises that",
	},
}

// qwenHome turns off what would ask the model unasked, and most of the retries.
func qwenHome(t *testing.T, home string) {
	writeFile(t, filepath.Join(home, ".qwen", "settings.json"), `{
  "memory": {"enableManagedAutoMemory": false},
  "model": {"generationConfig": {"maxRetries": 0}},
  "general": {"enableAutoUpdate": false},
  "telemetry": {"enabled": false},
  "privacy": {"usageStatisticsEnabled": false}
}`)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readChat reads a request of the chat completions API.
func readChat(q fakemodel.Request) (asked, error) {
	body, err := q.Chat()
	if err != nil {
		return asked{}, err
	}
	a := asked{Model: body.Model, Effort: body.Effort()}
	for _, m := range body.Messages {
		for _, part := range m.Content {
			if _, encoded, ok := strings.Cut(part.ImageURL.URL, ";base64,"); ok {
				data, err := base64.StdEncoding.DecodeString(encoded)
				if err != nil {
					return asked{}, err
				}
				a.Images = append(a.Images, data)
			}
		}
		for _, text := range m.Content.Texts() {
			if m.Role == "system" || m.Role == "developer" {
				a.System += text + "\n"
			} else {
				a.Texts = append(a.Texts, text)
			}
		}
	}
	for _, tool := range body.Tools {
		a.Tools = append(a.Tools, tool.Function.Name)
	}
	return a, nil
}
