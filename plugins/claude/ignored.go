package main

// ignored are the lines that are known and give no event, with the reason. What
// stands neither here nor in the code becomes a log event, so that a change of
// the CLI shows.
var ignored = map[string]string{
	"system/thinking_tokens":           "an estimate while the model thinks; the result has the figure",
	"system/task_started":              "the tool call told it: subagent_spawn or shell_start",
	"system/task_progress":             "the lines of the sub-agent tell more",
	"system/task_updated":              "task_notification follows",
	"system/task_summary":              "for the CLI's own screen",
	"system/ui_invalidate":             "for the CLI's own screen",
	"system/ui_status":                 "for the CLI's own screen",
	"system/ui_notify":                 "for the CLI's own screen",
	"system/ui_toast":                  "for the CLI's own screen",
	"system/session_state_changed":     "system/init and result tell it",
	"system/turn_starting":             "system/init tells it",
	"system/turn_duration":             "run_end has the duration",
	"system/stop_hook_summary":         "of the user's own hooks",
	"system/hook_started":              "of the user's own hooks; not asked for",
	"system/hook_progress":             "of the user's own hooks; not asked for",
	"system/hook_response":             "of the user's own hooks; not asked for",
	"system/commands_changed":          "slash commands, which amux passes on as text",
	"system/file_snapshot":             "the CLI's undo",
	"system/memory_recall":             "the CLI's own memory files",
	"system/model_refusal_no_fallback": "where it says nothing; the result tells the refusal",
	"system/memory_saved":              "the CLI's own memory files",
	"conversation_reset":               "system/init with another session id follows",
	"tool_progress":                    "how long a tool has run",
	"tool_use_summary":                 "tool_result tells more",
	"prompt_suggestion":                "not asked for",
	"keep_alive":                       "nothing but a sign of life",
	"control_request_progress":         "nothing but a sign of life",
}
