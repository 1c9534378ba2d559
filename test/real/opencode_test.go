package real

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

var opencodeRow = agentRow{
	id: "opencode", program: "opencode", env: opencodeEnv, read: readChat, shell: "bash",
	model: "fake/other-model", mcpTool: "echo_echo",
	noCacheWrites: true, patience: 3 * time.Minute,
	lacks: map[string]string{
		"that an answer is taken back": "by ACP it begins the answer again without a word",
		"tool_input_delta":             "a tool is told when it is whole",
		"retry":                        "it makes failed requests again without a line",
		"rate_limited":                 "it makes failed requests again without a line",
		"how long to wait":             "it makes failed requests again without a line",
		"a retry when overloaded":      "it makes failed requests again without a line",
		"the cost before":              "what a session that goes on has cost before is not told, so that the cost of its next turn is not known",
		"steps":                        "the tokens of a turn are those of its last request",
	},
	na: map[string]string{
		"sub-agent":                "what a sub-agent does is told in a session of its own, not to the client",
		"question":                 "it does not offer its question tool to clients of ACP",
		"approval denied":          "a denial ends the turn without another request of the model",
		"nobody to approve":        "a denial ends the turn without another request of the model",
		"max turns":                "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":               "it has no limit of money",
		"json schema":              "it has structured output over HTTP only",
		"context too long":         "it compacts the conversation instead and goes on",
		"prompt above the context": "it compacts the conversation instead and goes on",
		"options":                  "it cannot be given an effort by ACP",
		"system replaced":          "it can add to its system prompt only",
	},
	elsewise: map[string]otherCode{
		"a flag that the agent does not know": {pluginapi.CodeAgentFailed, "it prints its help and does not name the flag"},
		"the provider answers 403":            {pluginapi.CodeAgentFailed, "by ACP it passes on the provider's words without the status, and these words name no cause"},
	},
}

// opencodeConfig is a provider of the chat completions API.
const opencodeConfig = `{
  "$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
  "model": "fake/fake-model", "small_model": "fake/fake-model",
  "agent": {"title": {"disable": true}},
  "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake",
    "options": {"baseURL": "%s/v1", "apiKey": "sk-test-fake"},
    "models": {
      "fake-model": {"name": "Fake", "reasoning": true, "tool_call": true, "attachment": true,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": 8000000, "output": 8192}, "cost": {"input": 1, "output": 2, "cache_read": 0.1}},
      "other-model": {"name": "Other", "reasoning": true, "tool_call": true,
        "limit": {"context": 8000000, "output": 8192}, "cost": {"input": 1, "output": 2, "cache_read": 0.1}}
    }}}
}`

// opencodeEnv points opencode at a fake model, by its settings file.
func opencodeEnv(home, baseURL string) []string {
	dir := filepath.Join(home, ".config", "opencode")
	os.MkdirAll(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "opencode.json"), fmt.Appendf(nil, opencodeConfig, baseURL), 0o600)
	return []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
}
