package app

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// elsewhere says how amux calls what docker, gh and the agents' own CLIs call otherwise:
// by command, "" for amux itself, and word or flag.
var elsewhere = map[string]map[string]string{
	"": {
		"exec": "amux send RUN", "start": "amux rerun RUN", "restart": "amux rerun RUN", "create": "amux run AGENT",
		"tail": "amux logs -f RUN", "watch": "amux logs -f RUN", "top": "amux ps", "status": "amux ps", "jobs": "amux ps",
		"list": "amux ps for runs, amux agents list for agents", "info": "amux doctor", "check": "amux doctor",
		"cancel": "amux stop RUN to end a run, amux interrupt RUN to end its turn", "abort": "amux stop RUN",
		"login": "amux agents auth AGENT", "auth": "amux agents auth AGENT", "images": "amux agents list",
		"models": "amux agents models AGENT", "pull": "amux agents install AGENT", "install": "amux agents install AGENT, or amux plugin install SOURCE",
		"update": "amux agents update AGENT", "upgrade": "amux agents update AGENT", "search": "amux history WORD",
		"chat": "amux run -i AGENT", "continue": "amux run AGENT --continue", "system": "amux clean", "gc": "amux clean",
		"daemon": "amux serve", "server": "amux serve", "skills": "amux agents skills list AGENT", "skill": "amux agents skills list AGENT", "man": "amux help COMMAND",
		"container": "amux ps for runs, amux run AGENT to start one", "stats": "amux top", "events": "amux logs -f --json RUN",
		"rename": "amux run --name NAME, when it starts", "cp": "amux diff RUN --apply FOLDER", "download": "amux diff RUN --apply FOLDER",
		"browse": "amux top", "extension": "amux plugin list", "questions": "amux inbox", "pr": "amux diff RUN, amux worktree merge NAME",
		"ask": "amux run AGENT \"…\"", "prompt": "amux run AGENT \"…\"", "new": "amux run AGENT \"…\"",
	},
	"run": {
		"rm": "--no-record", "t": "-i for a conversation, --pty for a terminal", "tty": "--pty",
		"p": "the prompt is an argument: amux run AGENT \"…\"", "print": "amux run AGENT \"…\"", "prompt": "the prompt is an argument: amux run AGENT \"…\"",
		"w": "--cwd FOLDER", "workdir": "--cwd FOLDER", "C": "--cwd FOLDER", "cd": "--cwd FOLDER", "dir": "--cwd FOLDER", "directory": "--cwd FOLDER",
		"yes": "--approve auto", "y": "--approve auto", "yolo": "--approve auto", "full-auto": "--approve auto", "force": "--approve auto",
		"dangerously-skip-permissions": "--approve auto", "dangerously-bypass-approvals-and-sandbox": "--approve auto", "allow-all-tools": "--approve auto",
		"allowed-tools": "--allow RULE", "allowedTools": "--allow RULE", "allow-tool": "--allow RULE",
		"disallowed-tools": "--deny RULE", "disallowedTools": "--deny RULE", "deny-tool": "--deny RULE",
		"output-format": "--json", "stream-json": "--json", "image": "--file FILE", "verbose": "--debug", "v": "--debug",
		"session-id": "--resume SESSION", "session": "--resume SESSION", "c": "--continue", "system-prompt": "--system TEXT",
		"append-system-prompt": "--system TEXT", "reasoning-effort": "--effort WORD", "mcp-config": "--mcp FILE", "label": "--tag TAG", "l": "--tag TAG",
	},
	"logs": {"since": "-n LINES", "t": "--json: each event has its time", "timestamps": "--json: each event has its time"},
	"stop": {"t": "amux run --grace DURATION sets it at the start", "time": "amux run --grace DURATION sets it at the start"},
	"ps":   {"f": "--filter KEY=VALUE", "w": "amux top", "watch": "amux top", "jq": "--json, with jq behind it", "l": "-n 1", "latest": "-n 1", "no-trunc": "--json", "status": "--filter state=WORD", "limit": "-n NUMBER", "L": "-n NUMBER"},
	"kill": {"9": "amux kill RUN kills at once"},
}

// verbs are those that gh has below run: amux has them at its top.
var verbs = map[string]string{
	"list": "amux ps", "ls": "amux ps", "ps": "amux ps", "view": "amux inspect RUN", "show": "amux inspect RUN",
	"watch": "amux logs -f RUN", "logs": "amux logs RUN", "cancel": "amux stop RUN", "stop": "amux stop RUN", "rerun": "amux rerun RUN",
	"delete": "amux rm RUN", "rm": "amux rm RUN", "download": "amux diff RUN --apply FOLDER",
}

// RunVerb says which command of amux does what "gh run VERB" does; empty for any other
// word.
func RunVerb(word string) string { return verbs[word] }

// here says how amux calls a word or a flag of another tool; empty if nobody knows it.
func here(cmd *cobra.Command, word string) string {
	of := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
	return elsewhere[of][word]
}

// Also has a command know a flag by another tool's name as well.
func Also(cmd *cobra.Command, flag string, names ...string) {
	known := cmd.Flags()
	normalize := known.GetNormalizeFunc()
	known.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		if slices.Contains(names, name) {
			name = flag
		}
		return normalize(f, name)
	})
}
