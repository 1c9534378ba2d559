package real

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	openclawOnce    = "one prompt is told as one document at the end, with the names of the tools alone"
	openclawGateway = "one process is one prompt; TestOpenclawOptions has it with a gateway"
	openclawTries   = "it tries for three or four minutes, which cannot be lowered; recordings have how that begins and ends"
)

var openclawRow = agentRow{
	id: "openclaw", program: "openclaw", env: openclawEnv, read: readChat, shell: "exec",
	plan: "plugins/openclaw/plan.go", helpOf: []string{"agent", "exec"},
	hidden: "--local --agent --session-id --url --token-file", // of agent and acp; TestOpenclawOptions uses them
	model:  "fake/other-model", always: []string{"--approve", "auto"},
	noCacheWrites: true, patience: 15 * time.Minute,
	lacks: map[string]string{
		"messages before the last": "it prints its last message alone",
		"shell_start":              openclawOnce,
		"its prompt alone":         "it adds what it knows of the time and the folder to a prompt",
	},
	na: map[string]string{
		"partials":                    openclawOnce,
		"thinking":                    openclawOnce,
		"tool":                        openclawOnce,
		"failing tool":                openclawOnce,
		"file edit":                   openclawOnce,
		"story":                       openclawOnce,
		"parallel tools":              openclawOnce,
		"sub-agent":                   openclawOnce,
		"two turns":                   openclawGateway,
		"stdin ends the conversation": openclawGateway,
		"approval granted":            openclawGateway,
		"approval denied":             openclawGateway,
		"nobody to approve":           openclawGateway,
		"interrupt a stream":          openclawGateway,
		"interrupt a tool":            openclawGateway,
		"another model":               "the gateway's model cannot be chosen by ACP, and one process of the others is one prompt",
		"sessions":                    "a usual run keeps none; TestOpenclawOptions lists one of the driver local",
		"question":                    "it asks nothing",
		"resume":                      "TestOpenclawOptions has it with the driver local",
		"fork":                        "it has no fork",
		"unknown session":             "it begins a session of that name",
		"429":                         openclawTries,
		"529":                         openclawTries,
		"mcp":                         "of tools only the names are told; TestOpenclawOptions has it",
		"max turns":                   "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":                  "it has no limit of money",
		"json schema":                 "it has no structured output",
		"image":                       "it takes images by a gateway only",
		"5 MB prompt":                 "it takes no prompt of more than 4 MiB, and amux says so",
		"prompt above the context":    "it takes no prompt of more than 4 MiB, and amux says so",
		"options":                     "it takes no system prompt; TestOpenclawOptions has model and effort",
		"option tool_rules":           openclawGateway,
		"option no_session":           "a usual run keeps none; TestOpenclawOptions has one with the driver local",
		"system replaced":             "it takes no system prompt",
	},
}

// openclawConfig is a provider of the chat completions API. What only costs time is
// off.
const openclawConfig = `{
  "gateway": {"mode": "local"},
  "agents": {"defaults": {"model": {"primary": "fake/fake-model"}, "skipBootstrap": true}},
  "models": {"mode": "merge", "providers": {"fake": {"baseUrl": "%s/v1", "apiKey": "sk-test-fake", "api": "openai-completions", "models": [
    {"id": "fake-model", "name": "Fake", "reasoning": true, "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 8192, "compat": {"supportsReasoningEffort": true},
     "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}},
    {"id": "other-model", "name": "Other", "reasoning": true, "input": ["text"], "contextWindow": 200000, "maxTokens": 8192, "compat": {"supportsReasoningEffort": true},
     "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}}
  ]}}}
}`

// openclawEnv points openclaw at a fake model by its settings file.
func openclawEnv(home, baseURL string) []string {
	dir := filepath.Join(home, ".openclaw")
	os.MkdirAll(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "openclaw.json"), fmt.Appendf(nil, openclawConfig, baseURL), 0o600)
	return []string{"OPENCLAW_TELEMETRY_DISABLED=1", "DO_NOT_TRACK=1", "OPENCLAW_OFFLINE=1"}
}
