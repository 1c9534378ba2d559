package real

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

var piRow = agentRow{
	id: "pi", program: "pi", env: piEnv, read: readChat, shell: "bash",
	plan:  "plugins/others/internal/pi/plan.go",
	model: "fake/other-model", always: []string{"--approve", "auto"},
	noCacheWrites: true, patience: time.Minute,
	lacks: map[string]string{
		"how long to wait": "it waits by a clock of its own, whatever the header says",
		"approval_request": "it asks for nothing before it acts",
		"approval_granted": "it asks for nothing before it acts",
		"file_create":      "it does not say whether a file is new",
	},
	tells: map[string][2]string{
		"file_create": {"file_write", "it does not say whether a file is new"},
	},
	na: map[string]string{
		"sub-agent":                "it has none",
		"approval granted":         "it asks for nothing before it acts",
		"approval denied":          "it asks for nothing before it acts",
		"nobody to approve":        "it asks for nothing before it acts",
		"question":                 "it asks nothing",
		"max turns":                "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":               "it has no limit of money",
		"mcp":                      "its MCP servers are those of its settings",
		"json schema":              "it has no structured output",
		"image":                    "the pinned bundle lacks the library that makes images smaller, and leaves them out",
		"prompt above the context": "it sends what is too long and leaves it to the provider",
	},
}

// piConfig is a provider of the chat completions API.
const piConfig = `{"providers": {"fake": {"baseUrl": "%s/v1", "api": "openai-completions", "apiKey": "sk-test-fake", "models": [
  {"id": "fake-model", "name": "Fake", "reasoning": true, "input": ["text", "image"], "contextWindow": 8000000, "maxTokens": 8192,
   "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}},
  {"id": "other-model", "name": "Other", "reasoning": true, "input": ["text"], "contextWindow": 8000000, "maxTokens": 8192,
   "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}}
]}}}`

// piEnv points pi at a fake model, by its settings files.
func piEnv(home, baseURL string) []string {
	dir := filepath.Join(home, ".pi", "agent")
	os.MkdirAll(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "models.json"), fmt.Appendf(nil, piConfig, baseURL), 0o600)
	os.WriteFile(filepath.Join(dir, "settings.json"), []byte(`{"defaultProvider": "fake", "defaultModel": "fake-model"}`), 0o600)
	return []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"}
}
