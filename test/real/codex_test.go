package real

import (
	"encoding/base64"
	"strings"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/internal/test/toolchain"
)

var codex = agentRow{
	id: "codex", program: "codex", env: toolchain.OpenAI, read: readOpenAI, shell: "exec_command",
	plan: "plugins/codex/execplan.go", helpOf: []string{"exec"},
	model: "gpt-5.6-luna", mcpTool: "mcp__echo.echo",
	// Its older models have no sub-agents.
	subagent: []string{"--model", "gpt-6-sol"},
	unpriced: true,
	lacks: map[string]string{
		"tool_input_delta":        "app-server tells a call when it is whole",
		"a sub-agent's prompt":    "it is encrypted",
		"how long to wait":        "the header does not leave the CLI",
		"a retry when overloaded": "it gives up at once",
	},
	na: map[string]string{
		"max budget":  "it says no money, so that the option is refused",
		"5 MB prompt": "it takes a million characters at most in a message",
	},
}

// readOpenAI reads a request of the Responses API. Codex gives its system prompt
// as messages of the role developer.
func readOpenAI(q fakemodel.Request) (asked, error) {
	body, err := q.OpenAI()
	if err != nil {
		return asked{}, err
	}
	a := asked{Model: body.Model, Effort: body.Reasoning.Effort, System: body.Instructions, Tools: body.ToolNames()}
	for _, item := range body.Input {
		if item.Role == "developer" {
			a.System += strings.Join(item.Content.Texts(), "\n") + "\n"
			continue
		}
		a.Texts = append(append(a.Texts, item.Content.Texts()...), item.Output.Texts()...)
		for _, part := range item.Content {
			if part.ImageURL == "" {
				continue
			}
			_, encoded, _ := strings.Cut(part.ImageURL, ",")
			image, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				return asked{}, err
			}
			a.Images = append(a.Images, image)
		}
	}
	return a, nil
}
