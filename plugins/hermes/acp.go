package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/acp"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// linger is how long it may take to exit at the end of its stdin.
const linger = 10 * time.Second

// converse begins the conversation with one process by the Agent Client Protocol.
func converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return acp.Converse(acp.Config{
		Agent: agentID, Guidance: authGuidance, Refusals: refusals, Linger: linger, Tested: minimumVersion,
		Session:   acp.Session{Mode: "default", Absent: absent},
		Tools:     acp.Tools{Name: toolName, Detail: acpDetail, Complete: complete, Output: printed, Whole: true},
		Questions: acp.Questions{Asks: asks},
		Words:     acp.Words{Error: errorText},
		Usage:     acp.Usage{Read: usage, Cumulative: true},
	}, start)
}

// absent: a session that is there is told with its models and modes.
func absent(result jsonl.Value) bool {
	return result.Text("sessionId") == "" && !result.Get("models").IsObject() && !result.Get("modes").IsObject()
}

// toolName is what stands before the colon of a title: "terminal: echo hi".
func toolName(call jsonl.Value) string {
	name, _, _ := strings.Cut(call.Text("title"), ":")
	return name
}

// asks: a question about an edit names the file, one about a command only what it is.
func asks(asked jsonl.Value, call acp.Call) bool {
	if asked.Text("kind") != call.Kind {
		return false
	}
	path := asked.Text("content", "0", "path")
	return path == "" || path == call.Path
}

// acpDetail is what a tool is for. Of its input the CLI shows the command, after a
// dollar, or the file.
func acpDetail(name string, call acp.Call) turn.Detail {
	if d, ok := ofServer(name); ok {
		return d
	}
	switch name {
	case "terminal":
		command, ok := strings.CutPrefix(call.Text, "$ ")
		if !ok {
			command = strings.TrimPrefix(call.Title, "terminal: ")
		}
		return turn.Detail{Kind: turn.Shell, Command: command, Described: !ok}
	case "read_file":
		return turn.Detail{Kind: turn.Read, Path: call.Path}
	case "write_file":
		d := turn.Detail{Kind: turn.Write, Path: call.Path}
		if call.Diff != nil {
			n := int64(len(call.Diff.New))
			d.Bytes = &n
		}
		return d
	}
	return turn.Detail{}
}

var (
	shownOutput = pattern.New(`(?s)^terminal result\n- \*\*output:\*\* (.*?)(?:\n- \*\*exit_code:\*\* -?\d+.*)?$`)
	shownCode   = pattern.New(`\n- \*\*exit_code:\*\* (-?\d{1,6})`)
)

// printed is what a command has printed, of how its result is shown.
func printed(update jsonl.Value) string {
	if m := shownOutput.FindStringSubmatch(update.Text("content", "0", "content", "text")); m != nil {
		return m[1]
	}
	return ""
}

// complete reads how a command ended.
func complete(update jsonl.Value, d turn.Detail, r *turn.Result) {
	if d.Kind != turn.Shell {
		return
	}
	r.Stdout = printed(update)
	if m := shownCode.FindStringSubmatch(update.Text("content", "0", "content", "text")); m != nil {
		code, _ := strconv.Atoi(m[1])
		r.ExitCode = &code
	}
}

var (
	noMoney = pattern.New(`^(?:Billing or credits exhausted|Provider reported usage/credit exhaustion[^:]*): `)
	tooLong = pattern.New(`^(?:Context compression (?:is temporarily paused after|timed out without|could not bring) |This conversation (?:\(including attachments\) )?(?:has grown too|is too long) )`)
)

// errorText reads a failed request of the model, which is told in the model's place:
// what the provider said is behind that word, or behind the reason.
func errorText(text string) *pluginapi.Outcome {
	if _, said, found := strings.Cut(text, "\nProvider said: "); found {
		return reason(said, "")
	}
	if begin := noMoney.FindString(text); begin != "" {
		said, _, _ := strings.Cut(text[len(begin):], "\n\n")
		return &pluginapi.Outcome{Code: string(pluginapi.CodeBilling), Message: said}
	}
	if tooLong.MatchString(text) {
		return reason(text, "")
	}
	return nil
}

// usage is that of the session so far; its input has in it what came from a cache.
func usage(result jsonl.Value) (pluginapi.TokenUsage, bool) {
	u, ok := acp.Tokens(result)
	if ok && u.InputTokens != nil && u.CacheReadTokens != nil {
		n := max(*u.InputTokens-*u.CacheReadTokens, 0)
		u.InputTokens = &n
	}
	return u, ok
}
