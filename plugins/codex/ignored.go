package main

// ignored are the notifications that are known and give no event, with the
// reason. What stands neither here nor in the code becomes a log event, so that a
// change of the CLI shows.
var ignored = map[string]string{
	"thread/started":                            "the answer to thread/start tells it",
	"thread/status/changed":                     "turn/started and turn/completed tell it",
	"thread/settings/updated":                   "what amux has asked for itself",
	"thread/readState/changed":                  "for the CLI's own list of threads",
	"thread/archived":                           "for the CLI's own list of threads",
	"thread/unarchived":                         "for the CLI's own list of threads",
	"thread/deleted":                            "for the CLI's own list of threads",
	"thread/closed":                             "a thread that nobody is subscribed to",
	"thread/section/changed":                    "for the CLI's own list of threads",
	"thread/project/updated":                    "for the CLI's own list of threads",
	"thread/prediction/updated":                 "for the CLI's own screen",
	"thread/goal/updated":                       "the agent's own goal; its turns tell what it does",
	"thread/goal/cleared":                       "the agent's own goal",
	"thread/queue/changed":                      "of the CLI's own queue of prompts, which amux does not use",
	"thread/attachment/updated":                 "of attachments that amux does not use",
	"thread/environment/connected":              "of remote environments",
	"thread/environment/disconnected":           "of remote environments",
	"thread/compacted":                          "the item contextCompaction tells it",
	"turn/diff/updated":                         "the items fileChange tell it, one by one",
	"turn/moderationMetadata":                   "of the provider's own review",
	"model/verification":                        "of the provider's own review",
	"model/safetyBuffering/updated":             "of the provider's own review",
	"item/reasoning/summaryPartAdded":           "the deltas name their part",
	"item/fileChange/outputDelta":               "the item tells what was changed",
	"item/fileChange/patchUpdated":              "the item tells what was changed",
	"item/commandExecution/terminalInteraction": "what the agent types into a command of its own",
	"item/mcpToolCall/progress":                 "a sign of life; the item has the result",
	"item/autoApprovalReview/started":           "of the CLI's own reviewer",
	"item/autoApprovalReview/completed":         "of the CLI's own reviewer",
	"autoApprovalReview/strictReviewRequired":   "of the CLI's own reviewer",
	"hook/started":                              "of the user's own hooks",
	"hook/completed":                            "of the user's own hooks",
	"skills/changed":                            "for the CLI's own screen",
	"app/list/updated":                          "for the CLI's own screen",
	"project/changed":                           "for the CLI's own screen",
	"account/updated":                           "of the login, not of the run",
	"account/login/completed":                   "of the login, not of the run",
	"account/gatewayOAuth/changed":              "of the login, not of the run",
	"modelProvider/authRecoveryStarted":         "of the login; if it fails the turn says so",
	"modelProvider/authRecoveryCompleted":       "of the login; if it fails the turn says so",
	"mcpServer/oauthLogin/completed":            "of the login at an MCP server",
	"mcpServer/event/stream/notification":       "what an MCP server tells the CLI",
	"remoteControl/status/changed":              "of the CLI's own remote control",
	"fs/changed":                                "not asked for",
	"windows/worldWritableWarning":              "for the CLI's own screen",
	"windowsSandbox/setupCompleted":             "for the CLI's own screen",
}

// ignoredItems are the types of items that are known and give no event.
var ignoredItems = map[string]string{
	"userMessage":        "handled apart: ours come back",
	"hookPrompt":         "of the user's own hooks",
	"functionCallOutput": "what another client has answered",
	"sleep":              "the agent waits",
	"imageGeneration":    "not seen yet: it needs the provider's own tool",
	"enteredReviewMode":  "of the command /review, which amux does not give",
	"exitedReviewMode":   "of the command /review, which amux does not give",
}

// ignoredLines are those of `codex exec --json`.
var ignoredLines = map[string]string{
	"item.updated": "item.completed follows, whole",
}
