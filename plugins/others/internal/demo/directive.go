package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/pattern"
)

// step is one directive of a prompt.
type step struct {
	name  string
	value string
	do    func(a *agent, value string) error
}

// directive is one word that the agent obeys.
type directive struct {
	name    string
	usage   string
	meaning string
	do      func(a *agent, value string) error
}

// directives in the order in which they are documented.
var directives = []directive{
	{"lines", "[lines:N]", "say N lines, each a text delta, as fast as can be", (*agent).lines},
	{"sleep", "[sleep:SECONDS]", "do nothing for that long; 0.5 is half a second", (*agent).sleep},
	{"spawn", "[spawn:child|setsid|daemon]", "leave `sleep 1000` behind: as a child, in a session of its own, or as a daemon (double fork); the tool result says its pid", (*agent).spawn},
	{"ignore-term", "[ignore-term]", "ignore SIGTERM from now on", func(*agent, string) error { ignoreTerm(); return nil }},
	{"approve", "[approve]", "ask for approval before a file is written, and go on by the answer", (*agent).approve},
	{"ask", "[ask] or [ask:QUESTION]", "ask the user a question, and repeat the answer", (*agent).question},
	{"fail", "[fail] or [fail:CODE]", "report that the work failed, perhaps with one of amux's codes (RATE_LIMITED)", (*agent).fail},
	{"exit", "[exit:N]", "exit at once with code N, the turn unfinished", (*agent).exit},
	{"crash", "[crash]", "be killed in the middle of a line", (*agent).crash},
	{"say", "[say:TEXT]", "say TEXT as a message", func(a *agent, text string) error { a.pace = 0; return a.message(text) }},
	{"think", "[think:TEXT]", "think TEXT", func(a *agent, text string) error { a.pace = 0; return a.think(text) }},
	{"stderr", "[stderr:TEXT]", `print TEXT as a line on stderr; \n, \x1b and the like are understood`, (*agent).printStderr},
	{"raw", "[raw:TEXT]", "print TEXT as a line on stdout, whatever it is", (*agent).raw},
	{"bigline", "[bigline:BYTES]", "say that many bytes in one line", (*agent).bigLine},
	{"fast", "[fast]", "make no pauses; alone it gives the whole show", func(a *agent, _ string) error { a.pace = 0; return nil }},
}

var directiveRule = pattern.New(`\[([a-z-]+)(?::([^\]\n]*))?\]`)

// parseDirectives finds the directives of a prompt. Brackets that are none are
// text.
func parseDirectives(prompt string) []step {
	if len(prompt) > 64<<10 { // a document, not a script
		prompt = prompt[:64<<10]
	}
	var steps []step
	for _, match := range directiveRule.FindAllStringSubmatch(prompt, -1) {
		for _, d := range directives {
			if d.name == match[1] {
				steps = append(steps, step{d.name, match[2], d.do})
			}
		}
	}
	return steps
}

// follow carries the directives out.
func (a *agent) follow(prompt string, steps []step) error {
	a.pace = 0
	said := false
	for _, s := range steps {
		if err := s.do(a, s.value); err != nil {
			return err
		}
		said = said || s.name != "fast"
	}
	if !said {
		return a.show(prompt)
	}
	return a.message("Done.")
}

// failed is the error of a turn that the agent reports as failed.
type failed struct{ code, text string }

func (f *failed) Error() string { return f.text }

func bad(name, value string) error {
	return &failed{code: string(pluginapi.CodeValidation), text: fmt.Sprintf("[%s:%s] makes no sense; see: amux agents info demo", name, value)}
}

func (a *agent) lines(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return bad("lines", value)
	}
	for i := range n {
		b := append(a.out.AvailableBuffer(), `{"type":"text","text":"line `...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		a.out.Write(append(b, `\n"}`+"\n"...))
		if i%1024 == 0 {
			if err := a.pause(0); err != nil {
				return err
			}
		}
	}
	a.words += int64(n)
	a.say("message_end")
	return nil
}

func (a *agent) sleep(value string) error {
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e6) {
		return bad("sleep", value)
	}
	return a.pause(time.Duration(seconds * float64(time.Second)))
}

func (a *agent) spawn(kind string) error {
	if kind != "child" && kind != "setsid" && kind != "daemon" {
		return bad("spawn", kind)
	}
	id := a.call("shell", map[string]any{"command": "sleep 1000", "kind": kind}, field{"command", "sleep 1000"})
	pid, err := spawn(kind)
	return a.done(id, fmt.Sprintf("started sleep 1000 as %s, pid %d", kind, pid), err)
}

func (a *agent) approve(string) error {
	path, err := a.file("approved.txt")
	if err != nil {
		return err
	}
	input := map[string]any{"path": path, "content": "approved\n"}
	id := a.call("write_file", input, field{"path", path}, field{"bytes", len("approved\n")})
	reply, err := a.ask("permission", field{"call", id}, field{"name", "write_file"}, field{"input", input},
		field{"detail", "write approved.txt in the scratch folder"})
	if err != nil {
		a.say("tool_failed", field{"id", id}, field{"error", err.Error()})
		return err
	}
	if !reply.Allow {
		reason := reply.Reason
		if reason == "" {
			reason = "no reason given"
		}
		a.say("tool_failed", field{"id", id}, field{"error", "denied: " + reason})
		return a.message("It was denied (" + reason + "), so I leave it.")
	}
	content := "approved\n"
	var updated struct {
		Content *string `json:"content"`
	}
	if json.Unmarshal(reply.Input, &updated) == nil && updated.Content != nil {
		content = *updated.Content // the path stays: nothing outside the scratch folder is written
	}
	if err := a.done(id, fmt.Sprintf("wrote %q", content), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		return err
	}
	return a.message("It was approved, so I wrote the file.")
}

func (a *agent) question(text string) error {
	if text == "" {
		text = "Which colour do you like?"
	}
	reply, err := a.ask("question", field{"text", text})
	if err != nil {
		return err
	}
	if reply.Type == "reply" { // a refusal
		return a.message("Nobody answered.")
	}
	return a.message("You answered: " + reply.Text)
}

func (a *agent) fail(code string) error {
	if code != "" && !pluginapi.Code(code).Known() {
		return bad("fail", code)
	}
	return &failed{code: code, text: "the prompt asked for a failure"}
}

func (a *agent) exit(value string) error {
	code, err := strconv.Atoi(value)
	if err != nil || code < 0 || code > 255 {
		return bad("exit", value)
	}
	return exitNow(code)
}

func (a *agent) crash(string) error {
	a.out.WriteString(`{"type":"text","text":"in the middle of`)
	a.cleanUp()
	killSelf()
	return exitNow(1) // not reached where a process can kill itself
}

func (a *agent) printStderr(text string) error {
	a.out.Flush()
	_, err := fmt.Fprintln(a.stderr, unescape(text))
	return err
}

func (a *agent) raw(text string) error {
	a.out.WriteString(unescape(text) + "\n")
	return nil
}

func (a *agent) bigLine(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > 1<<30 {
		return bad("bigline", value)
	}
	a.out.WriteString(`{"type":"text","text":"`)
	chunk := strings.Repeat("0123456789abcdef", 4096)
	for n > 0 {
		piece := chunk[:min(n, len(chunk))]
		a.out.WriteString(piece)
		n -= len(piece)
	}
	a.out.WriteString("\"}\n")
	a.say("message_end")
	return nil
}

// unescape understands Go's escapes; text that has wrong ones stays as it is.
func unescape(text string) string {
	if s, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`); err == nil {
		return s
	}
	return text
}
