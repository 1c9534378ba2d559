package real

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

var hermesRow = agentRow{
	id: "hermes", program: "hermes", env: hermesEnv, read: readChat, shell: "terminal",
	plan: "plugins/hermes/plan.go", helpOf: []string{"chat"},
	unpriced: true, noCacheWrites: true, patience: 3 * time.Minute, slow: true,
	model: "other-model", asksAbout: "write",
	lacks: map[string]string{
		"an answer started over":                "it has the model go on where it was cut off",
		"blanks at the end of what was cut off": "it keeps its answer without them",
		"file_create":                           "its lines do not say whether a file is new",
		"why it was denied":                     "ACP carries no reason",
		"tool_input_delta":                      "a tool is told when it is whole",
		"retry":                                 "it makes failed requests again without a line",
		"rate_limited":                          "it makes failed requests again without a line",
		"how long to wait":                      "it makes failed requests again without a line",
		"a retry when overloaded":               "it makes failed requests again without a line",
	},
	na: map[string]string{
		"option tool_rules":        "it makes files by commands unasked; TestHermesOptions has rules about its own writing",
		"sub-agent":                "of what a sub-agent does nothing is told",
		"question":                 "it does not offer its question tool to programs",
		"max budget":               "it has no limit of money",
		"json schema":              "it has no structured output",
		"options":                  "an effort goes with --approve auto only; TestHermesOptions has all three",
		"system replaced":          "it can add to its system prompt only",
		"prompt above the context": "it sends what is too long and leaves it to the provider",
	},
	elsewise: map[string]otherCode{
		"the connection is reset in the middle": {"", "it asks the model to go on, and takes what came for the answer when that fails too"},
	},
}

// hermesConfig is a provider of the chat completions API. Off is what would ask the
// model unasked, and most of what it tries again.
const hermesConfig = `model:
  default: fake-model
  provider: custom
  base_url: %s/v1
  api_key: sk-test-fake
  context_length: 8000000
  supports_vision: true
agent: {api_max_retries: 1, auto_recovery_cycles: 0}
tools: {tool_search: {enabled: "off"}}
auxiliary: {title_generation: {enabled: false}, background_review: {enabled: false}}
curator: {enabled: false}
`

// hermesEnv points hermes at a fake model by its settings file.
func hermesEnv(home, baseURL string) []string {
	dir := filepath.Join(home, ".hermes")
	os.MkdirAll(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "config.yaml"), fmt.Appendf(nil, hermesConfig, baseURL), 0o600)
	return nil
}
