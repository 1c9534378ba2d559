package real

import (
	"regexp"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

var copilotRow = agentRow{
	id: "copilot", program: "copilot", env: copilotEnv, read: readCopilot, shell: "bash",
	plan: "plugins/others/internal/copilot/plan.go", unpriced: true, noCacheWrites: true,
	model: "gpt-5", mcpTool: "echo-echo", patience: 3 * time.Minute,
	lacks: map[string]string{
		"tool_input_delta": "a tool is told when it is whole",
		"rate_limited":     "by ACP it tells that it tries again, and not why or when; nothing for the waits between",
		"how long to wait": "by ACP it tells that it tries again, and not why or when; nothing for the waits between",
	},
	na: map[string]string{
		"sub-agent":         "by ACP what a sub-agent does is told as if the agent did it; TestCopilotOptions has the driver json",
		"fork":              "it has no fork",
		"approval denied":   "a denial ends the turn without another request of the model",
		"nobody to approve": "a denial ends the turn without another request of the model",
		"question":          "it does not offer its question tool to clients of ACP",
		"max turns":         "it has no limit of requests in a turn, and amux counts prompts",
		"max budget":        "its limit is in AI credits, not in money",
		"json schema":       "it has no structured output",
		"system replaced":   "it can add to its system prompt only",
	},
}

// copilotEnv points copilot at a fake model as a provider of one's own, for which
// it needs no account.
func copilotEnv(_, baseURL string) []string {
	return []string{
		"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_MODEL=fake-model",
		"COPILOT_PROVIDER_BASE_URL=" + baseURL + "/v1", "COPILOT_PROVIDER_API_KEY=sk-test-fake",
	}
}

var copilotDate = regexp.MustCompile(`^<current_datetime>[^<]*</current_datetime>\n\n`)

// readCopilot reads a request of the chat completions API; copilot puts the date
// before a prompt.
func readCopilot(q fakemodel.Request) (asked, error) {
	a, err := readChat(q)
	for i, text := range a.Texts {
		a.Texts[i] = copilotDate.ReplaceAllString(text, "")
	}
	return a, err
}
