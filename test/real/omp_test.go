package real

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

var ompRow = agentRow{
	id: "omp", program: "omp", env: ompEnv, read: readChat, shell: "bash",
	plan:   "plugins/others/internal/omp/plan.go",
	hidden: "--fork",
	model:  "fake/other-model", always: []string{"--approve", "auto"},
	noCacheWrites: true, patience: 3 * time.Minute,
	lacks: map[string]string{
		"another request":         "it gives up a request whose answer was cut off",
		"how long to wait":        "it waits by a clock of its own",
		"retry":                   "a failed request is made again without a line, before it is told as failed",
		"a retry when overloaded": "what was told as failed it may make again with a line",
		"an image's bytes":        "it encodes images again",
		"why it was denied":       "ACP carries no reason",
		"processes":               "its shell is a part of it, and sleep one of its own commands",
		"file_create":             "it does not say whether a file is new",
	},
	tells: map[string][2]string{
		"file_create": {"file_write", "it does not say whether a file is new"},
	},
	na: map[string]string{
		"sub-agent":                "its sub-agents work in the background, and nothing of what they do is printed",
		"nobody to approve":        "the scenario is run with --approve auto, as all others; TestOmpOptions has it",
		"question":                 "it asks nothing",
		"max turns":                "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":               "it has no limit of money",
		"mcp":                      "its MCP servers are those of its settings",
		"json schema":              "it has no structured output",
		"prompt above the context": "it sends what is too long and leaves it to the provider",
	},
}

// ompConfig is a provider of the chat completions API.
const ompConfig = `providers:
  fake:
    baseUrl: %s/v1
    api: openai-completions
    apiKey: sk-test-fake
    models:
      - {id: fake-model, name: Fake, reasoning: true, input: [text, image], contextWindow: 8000000, maxTokens: 8192, cost: {input: 1, output: 2, cacheRead: 0.1, cacheWrite: 0}}
      - {id: other-model, name: Other, reasoning: true, input: [text], contextWindow: 8000000, maxTokens: 8192, cost: {input: 1, output: 2, cacheRead: 0.1, cacheWrite: 0}}
`

// ompEnv points omp at a fake model by its settings files, and lowers its retries.
func ompEnv(home, baseURL string) []string {
	dir := filepath.Join(home, ".omp", "agent")
	os.MkdirAll(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "models.yml"), fmt.Appendf(nil, ompConfig, baseURL), 0o600)
	os.WriteFile(filepath.Join(dir, "config.yml"), []byte("retry: {maxRetries: 1, baseDelayMs: 100}\nmodelRoles: {default: fake/fake-model}\n"), 0o600)
	return []string{"PI_OFFLINE=1"}
}
