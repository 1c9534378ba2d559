package real

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

var qwenRow = agentRow{
	id: "qwen", program: "qwen", env: toolchain.Chat, read: readChat, shell: "run_shell_command", home: qwenHome,
	plan:     "plugins/others/internal/qwen/plan.go",
	unpriced: true, noCacheWrites: true, patience: 8 * time.Minute,
	model: "other-model", mcpTool: "mcp__echo__echo",
	lacks: map[string]string{
		"an answer started over":  "it has the model go on where it was cut off",
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
