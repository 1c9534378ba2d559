package render

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Activity says in one line what a run does now, by its last events; empty if they do not
// tell.
func Activity(events []host.Event) string {
	ended := map[string]bool{} // tools
	text := ""
	for _, raw := range slices.Backward(events) {
		var e event
		if json.Unmarshal(raw.Raw, &e) != nil {
			continue
		}
		switch raw.Type {
		case code.EventToolResult, code.EventToolError:
			ended[e.ToolCallID] = true
		case code.EventToolCallReady:
			if !ended[e.ToolCallID] && text == "" {
				arg, _ := argument(e.Input)
				return strings.TrimSpace(oneLine(e.ToolName) + " " + arg)
			}
		case code.EventApprovalRequest, code.EventInputRequired:
			if text == "" {
				return "asks: " + QuestionLine(host.Question{Approval: raw.Type == code.EventApprovalRequest, Event: raw.Raw})
			}
		case code.EventThinkingStart, code.EventThinkingDelta:
			if text == "" {
				return "thinks"
			}
		case code.EventTextDelta:
			if text = e.Delta + text; strings.Contains(strings.TrimRight(text, "\n"), "\n") {
				return lastLine(text)
			}
			continue
		case code.EventMessageStop:
			if text == "" && e.Text != "" {
				return lastLine(e.Text)
			}
		case code.EventRetry:
			return oneLine("tries again: " + e.Reason)
		case code.EventUserMessage:
			if text == "" {
				return "reads the prompt"
			}
		case code.EventRunEnd:
			if e.Message != "" {
				return oneLine(e.Message)
			}
			continue
		default:
			continue
		}
		if text != "" {
			break
		}
	}
	return lastLine(text)
}

// lastLine is the last line of a text that has any words.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return oneLine(text[strings.LastIndexByte(text, '\n')+1:])
}
