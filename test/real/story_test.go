package real

import (
	"slices"
	"strings"
)

// storyTypes is the story as every agent tells it: what it thinks and says, three
// tools of which the second fails, one more for which it asks, and its answer. What
// agents ask differs by their rules, and how they cut text and tokens is theirs.
const storyTypes = `user_message session_start turn_start
thinking_start thinking_stop message_start message_stop
tool_call_start tool_call_ready shell_start shell_exit tool_result
tool_call_start tool_call_ready shell_start shell_exit tool_error
tool_call_start tool_call_ready file_create tool_result
tool_call_start tool_call_ready shell_start shell_exit tool_result
message_start message_stop turn_end session_end run_end`

// story is storyTypes as this agent tells it.
func (r *run) story() string {
	types := strings.Fields(storyTypes)
	for i, t := range types {
		if other, ok := r.agent.tells[t]; ok {
			types[i] = other[0]
		}
	}
	return strings.Join(types, " ")
}

// skeleton is what the agent has told, of the types that a story has.
func (r *run) skeleton() string {
	known := append(strings.Fields(storyTypes), "file_write", "file_patch", "file_delete", "error", "retry", "interrupted")
	return strings.Join(slices.DeleteFunc(r.types(), func(t string) bool { return !slices.Contains(known, t) }), " ")
}
