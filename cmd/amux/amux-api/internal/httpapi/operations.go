package httpapi

import "github.com/danielgtaylor/huma/v2"

// tags are the groups of operations, by the first word of their paths.
var tags = []*huma.Tag{
	{Name: "runs", Description: "Runs: start, follow, control and read them."},
	{Name: "questions", Description: "What agents ask, and answers."},
	{Name: "agents", Description: "The agents that can be run here, and the sessions in their own stores."},
	{Name: "usage", Description: "Tokens and money."},
	{Name: "links", Description: "Links that sign a browser in."},
	{Name: "sign-in", Description: "The page's own signing in."},
	{Name: "health", Description: "The server itself."},
}

// descriptions are what the summary of an operation does not say, by its id.
var descriptions = map[string]string{
	"listAgents":         "All agents that plugins serve, with whether their program is installed and somebody is signed in. Nothing is started for it.",
	"getAgent":           "The models are those that its adapter knows; an agent that lists its own is asked, for ten seconds at most.",
	"listSessions":       "The agent's own conversations, also those that amux has not started, the newest first.",
	"readSession":        "What the agent has stored, as events, the active branch alone; 8 MiB at most, which truncated says.",
	"getHealth":          "The version of the server, and how many runs go on.",
	"createLink":         "Opening the link, which leads to amux's own page, signs one browser in. It works once, within ten minutes.",
	"listQuestions":      "What waits for an answer, of all live runs, the first asked first, each with the diff of a change where it can be told.",
	"listRuns":           "The live runs; with all the ended ones too. The newest first; more says that there are others.",
	"createRun":          "Settings and project are those of cwd, as of a command there. What may be started is bounded by [http] of config.toml. The answer comes when the agent has been started or queued.",
	"deleteRun":          "The record with its events, output and changes is gone for good. A run that goes on is not deleted: 409.",
	"getRun":             "From the record, whoever hosts the run, and whether it goes on or has ended.",
	"setApprove":         "What waits is judged again. Only for runs that were started with ask or rules (400 else), and within the bounds of [http] (403 else).",
	"getDiff":            "Against the work folder before the run; of a run that goes on, so far. Without a git work tree: 409.",
	"interruptRun":       "A conversation can go on with another prompt; other runs end. Agents that cannot be interrupted: 400.",
	"killRun":            "At once and without a grace time: agent and descendants.",
	"setModel":           "For agents that take another model while they run: 400 else.",
	"pauseRun":           "Every process of the run stands still, and so does the clock of its silence.",
	"sendPrompt":         "While the agent works on another prompt, it decides whether this one joins that turn. Runs of one prompt take none: 409.",
	"listQuestionsOfRun": "What waits for an answer now, the first asked first.",
	"answerQuestion":     "approve and deny are for requests for permission, answer for questions. allow_rules approves and has the host approve what the rules allow for the rest of the run.",
	"resumeRun":          "All processes go on from where they stood.",
	"stopRun":            "The agent gets TERM and the grace time, then KILL, with all its descendants. The answer does not wait for the end.",
	"waitForRun":         "Until the run has ended, with questions also until it asks, or the timeout is over. The state says which.",
	"signOut":            "The cookie is taken back from this browser. Other browsers stay signed in.",
	"signIn":             "With the code of a link, which is then used up. The answer sets a cookie and returns the key that requests show beside it.",
	"getUsage":           "Of runs that have ended since the time given. Money is what the agents name; null where none of them does.",
}
