package fakemodel

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Turn is what a script sees of a request, whatever the API.
type Turn struct {
	Model  string   // that was asked
	Prompt string   // newest prompt of the user
	Round  int      // replies of the model since that prompt
	Try    int      // requests with that prompt so far, this one included
	Again  int      // requests with that prompt and round so far, this one included
	Tools  []string // names of the tools the agent offers
	// Schema is the JSON schema of the tool for structured output, if offered.
	Schema map[string]any

	Script, Arg string // as the marker says
}

// Reply is what the model answers: parts in the order thinking, text, tool calls;
// or an error if Status is set.
type Reply struct {
	Thinking string
	Text     []string // one delta each
	Calls    []Call
	Every    time.Duration // pause before each delta of text
	Hang     bool          // after the text, say no more until the agent leaves
	Reset    string        // reset the connection: after the "text", or within the input of the first "call"
	Drop     bool          // reset the connection of every request: at once, or after the text
	Refused  bool          // the provider's policy forbids an answer, in the API's own words

	Status     int
	Kind       string // of the error, in the words of the API: "rate_limit_error"
	Message    string
	RetryAfter int // seconds; 0: no such header
}

// Call is one use of a tool. Kind is one of the keys of tools.go, or "raw", which
// names the tool itself in Args["name"] and its input in Args["input"].
type Call struct {
	Kind string
	Args map[string]any
}

// Texts that tests may compare with.
const (
	HelloText    = "Hello from the fake model."
	ThinkingText = "Let me think about that. It is simple."
	DoneText     = "Done."
	// SleepCommand runs for long. Claude Code refuses a sleep that stands alone.
	SleepCommand = "echo started; sleep 987; echo never"
	// ContextMessage is the 400 of a conversation that is too long.
	ContextMessage = "prompt is too long: 205000 tokens > 200000 maximum"
	// QuotaMessage comes with the status of a rate limit, and is about money.
	QuotaMessage = "You exceeded your current quota, please check your plan and billing details."
	// UnknownModel, as a part of a model's name, makes it one that the provider has not.
	UnknownModel  = "no-such-model"
	CreditMessage = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
)

var (
	markerPattern   = regexp.MustCompile(`\[fm:([a-z0-9-]+)(?:=([^\]]*))?\]`)
	reminderPattern = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
)

// marker finds the newest "[fm:name=arg]" of the prompt.
func (t *Turn) marker() (name, arg string) {
	all := markerPattern.FindAllStringSubmatch(t.Prompt, -1)
	if len(all) == 0 {
		return "", ""
	}
	last := all[len(all)-1]
	return last[1], last[2]
}

// number is the argument as a number.
func (t *Turn) number(otherwise int) int {
	if n, err := strconv.Atoi(t.Arg); err == nil {
		return n
	}
	return otherwise
}

// DeltaText is delta number i (from 0) of the scripts deltas and slow.
func DeltaText(i int) string { return fmt.Sprintf("word%d ", i) }

func deltas(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = DeltaText(i)
	}
	return all
}

func hello() Reply {
	return Reply{Text: []string{"Hello ", "from the ", "fake model."}}
}

// unknownModel is the answer to a request for a model that is not there.
func unknownModel(name string) Reply {
	return failure(http.StatusNotFound, "not_found_error", "model: "+name)
}

func done() Reply { return Reply{Text: []string{DoneText}} }

func shell(command string) Call {
	return Call{Kind: "shell", Args: map[string]any{"command": command}}
}

// rounds plays one reply a round; after the last it says Done.
func rounds(t *Turn, replies ...Reply) Reply {
	if t.Round < len(replies) {
		return replies[t.Round]
	}
	return done()
}

// announced says that it runs a command, runs it, and says Done.
func announced(t *Turn) Reply {
	return rounds(t, Reply{Text: []string{"I will run ", "a command."}, Calls: []Call{shell("echo hi")}})
}

func calls(all ...Call) Reply { return Reply{Calls: all} }

func failure(status int, kind, message string) Reply {
	return Reply{Status: status, Kind: kind, Message: message}
}

func broken() Reply { return failure(500, "api_error", "Internal server error") }

// statusOverloaded is what Anthropic answers; other APIs say it in their words.
const statusOverloaded = 529

func overloaded() Reply { return failure(statusOverloaded, "overloaded_error", "Overloaded") }

// Scripts lists the names that a marker may have.
func Scripts() []string {
	var names []string
	for name := range scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// scripts by name. An argument follows the name after "=".
var scripts = map[string]func(*Turn) Reply{
	"text":   func(*Turn) Reply { return hello() },
	"echo":   func(t *Turn) Reply { return Reply{Text: []string{t.Arg}} },
	"deltas": func(t *Turn) Reply { return Reply{Text: deltas(t.number(100))} }, // =count
	"think": func(*Turn) Reply {
		reply := hello()
		reply.Thinking = ThinkingText
		return reply
	},
	// slow says =count words, one every 50 ms; hang says three and then nothing.
	"slow": func(t *Turn) Reply { return Reply{Text: deltas(t.number(100)), Every: 50 * time.Millisecond} },
	"hang": func(*Turn) Reply { return Reply{Text: deltas(3), Hang: true} },

	// reset is cut off in the first =count requests of each round: within its text.
	// reset-call is cut off within the call that follows the text.
	"reset": func(t *Turn) Reply {
		if t.Again <= t.number(1) {
			return Reply{Text: deltas(3), Reset: "text"}
		}
		return announced(t)
	},
	"reset-call": func(t *Turn) Reply {
		if t.Round == 0 && t.Again <= t.number(1) {
			return Reply{Text: deltas(3), Calls: []Call{shell("echo lost")}, Reset: "call"}
		}
		return announced(t)
	},

	"bash":  func(t *Turn) Reply { return rounds(t, calls(shell("echo hi"))) },
	"fail":  func(t *Turn) Reply { return rounds(t, calls(shell("exit 3"))) },
	"sleep": func(t *Turn) Reply { return rounds(t, calls(shell(SleepCommand))) },
	// touch changes a file by the shell, =path: agents ask before they do so.
	"touch":          func(t *Turn) Reply { return rounds(t, calls(shell("touch "+t.Arg))) },
	"text-then-bash": announced,
	"parallel":       func(t *Turn) Reply { return rounds(t, calls(shell("echo one"), shell("echo two"))) },
	// stuck calls the same tool again and again.
	"stuck": func(*Turn) Reply { return calls(shell("echo again")) },
	"loop":  func(t *Turn) Reply { return calls(shell(fmt.Sprintf("echo round %d", t.Round))) },

	// write makes the file =path; edit writes, changes and reads it.
	"write": func(t *Turn) Reply { return rounds(t, calls(writeFile(t.Arg))) },
	"edit": func(t *Turn) Reply {
		return rounds(t,
			calls(writeFile(t.Arg)),
			calls(Call{Kind: "edit", Args: map[string]any{"path": t.Arg, "old": "hello", "new": "goodbye"}}),
			calls(Call{Kind: "read", Args: map[string]any{"path": t.Arg}}))
	},

	// story thinks, speaks, and calls three tools, of which one fails and one makes
	// the file =path.
	"story": func(t *Turn) Reply {
		begin := Reply{Thinking: ThinkingText, Text: []string{"I will ", "look around."}, Calls: []Call{shell("echo hi")}}
		return rounds(t, begin, calls(shell("exit 3")), calls(writeFile(t.Arg)), calls(shell("touch "+t.Arg+"2")))
	},

	// fix mends the function Add of the file =path and runs its tests: README's picture.
	"fix": func(t *Turn) Reply {
		read := Call{Kind: "read", Args: map[string]any{"path": t.Arg}}
		edit := Call{Kind: "edit", Args: map[string]any{"path": t.Arg, "old": "return a - b", "new": "return a + b"}}
		return rounds(t,
			Reply{Text: []string{"TestAdd fails, ", "so I look at Add first."}, Calls: []Call{read}},
			Reply{Text: []string{"It subtracts ", "where it should add."}, Calls: []Call{edit}},
			calls(shell("go test ./...")),
			Reply{Text: []string{"Add subtracted b from a. ", "It adds them now, ", "and all tests pass."}})
	},

	"agent": func(t *Turn) Reply {
		return rounds(t, calls(Call{Kind: "agent", Args: map[string]any{"description": "inner job", "prompt": "[fm:bash] inner"}}))
	},
	"ask": func(t *Turn) Reply {
		return rounds(t, calls(Call{Kind: "ask", Args: map[string]any{
			"question": "Which colour?", "header": "Colour", "options": []string{"Red", "Blue"}}}))
	},
	// mcp calls the tool =name with {"text":"ping"}.
	"mcp": func(t *Turn) Reply {
		return rounds(t, calls(Call{Kind: "raw", Args: map[string]any{"name": t.Arg, "input": map[string]any{"text": "ping"}}}))
	},
	// json fills in the schema that the agent was given.
	"json": func(t *Turn) Reply {
		return rounds(t, calls(Call{Kind: "structured", Args: map[string]any{"value": instance(t.Schema)}}))
	},

	"401": func(*Turn) Reply { return failure(401, "authentication_error", "invalid x-api-key") },
	"403": func(*Turn) Reply {
		return failure(403, "permission_error", "Your account has no access to this model.")
	},
	"402": func(*Turn) Reply {
		return failure(402, "billing_error", "Insufficient credits. Add more to go on.")
	},
	"quota": func(*Turn) Reply {
		return failure(http.StatusTooManyRequests, "insufficient_quota", QuotaMessage)
	},
	"500":     func(*Turn) Reply { return broken() },
	"529":     func(*Turn) Reply { return overloaded() },
	"context": func(*Turn) Reply { return failure(400, "invalid_request_error", ContextMessage) },
	"credit":  func(*Turn) Reply { return failure(400, "invalid_request_error", CreditMessage) },
	// drop resets the connection after =words of text; every request does so.
	"drop": func(t *Turn) Reply { return Reply{Text: deltas(t.number(0)), Drop: true} },
	// refusal is an answer that the provider's policy forbids.
	"refusal": func(*Turn) Reply { return Reply{Refused: true} },
	// 429 asks to wait for =seconds; 0: it does not say how long.
	"429": func(t *Turn) Reply {
		reply := failure(http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")
		reply.RetryAfter = t.number(1)
		return reply
	},
	// flaky fails =times, then it is well.
	"flaky": func(t *Turn) Reply {
		if t.Try <= t.number(1) {
			return broken()
		}
		return hello()
	},
}

func writeFile(path string) Call {
	return Call{Kind: "write", Args: map[string]any{"path": path, "content": "hello\nworld\n"}}
}

// instance makes the least value that a JSON schema allows.
func instance(schema map[string]any) any {
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	kind, _ := schema["type"].(string)
	switch kind {
	case "string":
		return "text"
	case "integer", "number":
		return 42
	case "boolean":
		return true
	case "array":
		items, _ := schema["items"].(map[string]any)
		return []any{instance(items)}
	}
	object := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		inner, _ := property.(map[string]any)
		object[name] = instance(inner)
	}
	return object
}

// promptText takes an agent's own notes out of a user message.
func promptText(text string) string {
	if strings.Contains(text, "<task-notification>") {
		return "a task has ended"
	}
	if strings.Contains(text, "<system-reminder>") {
		text = reminderPattern.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}
