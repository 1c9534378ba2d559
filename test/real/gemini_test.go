package real

import (
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/internal/test/toolchain"
)

var geminiRow = agentRow{
	id: "gemini", program: "gemini", env: toolchain.Gemini, read: readGemini, shell: "run_shell_command", home: geminiHome,
	plan:     "plugins/gemini/plan.go",
	unpriced: true, noCacheWrites: true, uncached: true, minute: true, patience: 3 * time.Minute,
	mcpTool: "mcp_echo_echo",
	lacks: map[string]string{
		"that an answer is taken back": "by ACP it begins the answer again without a word",
		"tool_input_delta":             "a tool is told when it is whole",
		"retries in their place":       "it tells them on stderr, which has no order with its stdout",
		"exit codes":                   "what it says of a command by ACP has none",
		"the last session":             "it cannot list its sessions to a client of ACP",
		"how long to wait":             "it waits by a clock of its own and names the time on stderr only where the provider names one",
		"shell_stdout_delta":           "what it says of a command by ACP has no output",
		"outputs":                      "what it says of a command by ACP has no output",
		"why it was denied":            "ACP carries no reason",
	},
	tells: map[string][2]string{
		"tool_error": {"tool_result", "a command that fails is said to be completed"},
	},
	na: map[string]string{
		"failing tool": "a command's exit code is not told, and one that fails is said to be completed",
		"sub-agent":    "nothing of what its sub-agents do is told by ACP",
		"question":     "it does not offer its question tool to clients of ACP",
		"fork":         "it has no way to fork a session",
		"max turns":    "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":   "it has no limit of money",
		"json schema":  "it has no structured output",
		"5 MB prompt":  "it takes a million tokens at most, and nothing raises that",
		"options":      "it cannot be given an effort, nor add to its system prompt",
	},
}

// geminiHome chooses the key, a model, and few retries.
func geminiHome(t *testing.T, home string) {
	writeFile(t, filepath.Join(home, ".gemini", "settings.json"), `{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "model": {"name": "gemini-2.5-flash"},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false, "maxAttempts": 2}
}`)
}

// readGemini reads a request of the Gemini API.
func readGemini(q fakemodel.Request) (asked, error) {
	body, err := q.Gemini()
	if err != nil {
		return asked{}, err
	}
	a := asked{Model: body.Model}
	for _, part := range body.SystemInstruction.Parts {
		a.System += part.Text + "\n"
	}
	for _, content := range body.Contents {
		for _, part := range content.Parts {
			if part.Text != "" {
				a.Texts = append(a.Texts, part.Text)
			}
			if part.FunctionResponse != nil {
				a.Texts = append(a.Texts, string(part.FunctionResponse.Response))
			}
			if part.InlineData.Data != "" {
				data, err := base64.StdEncoding.DecodeString(part.InlineData.Data)
				if err != nil {
					return asked{}, err
				}
				a.Images = append(a.Images, data)
			}
		}
	}
	for _, tool := range body.Tools {
		for _, f := range tool.FunctionDeclarations {
			a.Tools = append(a.Tools, f.Name)
		}
	}
	return a, nil
}
