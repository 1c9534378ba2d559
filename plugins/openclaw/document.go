package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// refusals are what the CLI prints when it refuses to start, or ends.
var refusals = []turn.Refusal{
	{Text: "Node.js runtime", Code: pluginapi.CodeAgentNotInstalled, Hint: "OpenClaw runs on Node.js 24.16 or later"},
}

// maxDocument bounds what is kept of a document that does not end.
const maxDocument = 64 << 20

// document is the codec of one process that prints one document of JSON, over many
// lines, when all is over.
type document struct {
	turn.Base
	resumed  bool
	text     []byte // so far
	stopping bool   // it was interrupted
}

// Converse begins the conversation with one process.
func (adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	switch o := start.GetOptions(); {
	case o.GetPty():
		return &screen{Base: turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: testedVersion}}, nil
	case o.GetDriver() == driverACP:
		return converse(start)
	default:
		d := &document{
			Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: testedVersion},
			resumed: o.GetResume() != "",
		}
		d.Prompts = 1 // in the plan
		return d, nil
	}
}

// Handle turns one input into outputs.
func (d *document) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		d.line(in.Data, out)
	case pb.InputKind_INPUT_INTERRUPT:
		// It takes no words; a signal ends it without a document.
		d.stopping = true
		d.Interrupt(out)
		out.Signal("SIGTERM")
	case pb.InputKind_INPUT_PROMPT:
		// The plan has written it.
	case pb.InputKind_INPUT_EXIT:
		d.giveUp(out)
		if d.stopping {
			exit := in.GetExit()
			in = &pluginapi.Input{Kind: in.Kind, Exit: &pluginapi.Exit{Code: exit.GetCode(), Signal: exit.GetSignal(), Asked: true}}
		}
		d.Base.Handle(in, out)
	case pb.InputKind_INPUT_STDERR:
		retry(in.Data, out)
		d.Base.Handle(in, out)
	default:
		d.Base.Handle(in, out)
	}
	return nil
}

// retryPattern is what its log says before a failed request is made again.
var retryPattern = pattern.New(`transient same-model retry (\d{1,4})/(\d{1,4}) for \S+ reason=(\w+): delayMs=(\d{1,9})\b`)

// retry tells that a request is made again.
func retry(line []byte, out *sdk.Out) {
	m := retryPattern.FindSubmatch(line)
	if m == nil {
		return
	}
	attempt, _ := strconv.Atoi(string(m[1]))
	most, _ := strconv.Atoi(string(m[2]))
	delay, _ := strconv.ParseInt(string(m[4]), 10, 64)
	if string(m[3]) == "rate_limit" {
		out.Event(pluginapi.RateLimited{RetryAfterMS: &delay})
	}
	out.Event(pluginapi.Retry{Attempt: attempt, MaxAttempts: &most, Reason: string(m[3]), DelayMS: &delay})
}

// line adds a line. The document begins and ends with a brace that stands alone, all
// inside is indented; what is not has come between.
func (d *document) line(line []byte, out *sdk.Out) {
	begins, ends := string(line) == "{", string(line) == "}"
	if begins == (d.text != nil) || !begins && !ends && !bytes.HasPrefix(line, []byte("  ")) {
		out.Log("stdout", line)
		return
	}
	d.text = append(append(d.text, line...), '\n')
	switch {
	case ends:
		doc, err := jsonl.ParseObject(d.text)
		if err != nil {
			d.giveUp(out)
			return
		}
		defer doc.Release()
		d.text = nil
		d.tell(doc.Value, out)
	case len(d.text) > maxDocument:
		d.giveUp(out)
	}
}

// giveUp shows what is no document as it is.
func (d *document) giveUp(out *sdk.Out) {
	if d.text != nil {
		out.Log("stdout", d.text)
		d.text = nil
	}
}

// tell emits what happened. The driver exec says it in its own words, local in those
// of the gateway's runs, and what neither could begin is told as an error of the CLI.
func (d *document) tell(doc jsonl.Value, out *sdk.Out) {
	meta, summary := doc, doc.Get("toolSummary")
	if doc.IsObject("meta") {
		meta, summary = doc.Get("meta", "agentMeta"), doc.Get("meta", "toolSummary")
	}
	if d.Session = meta.Text("sessionId"); d.Session != "" {
		out.Event(pluginapi.SessionStart{SessionID: d.Session, Model: meta.Text("model"), Resumed: d.resumed})
		if d.resumed {
			out.Event(pluginapi.SessionResume{SessionID: d.Session})
		}
	}
	d.TurnStart(out)
	d.tools(summary, out)
	outcome := outcomeOf(doc)
	for _, p := range doc.Items("payloads") {
		if text := p.Text("text"); text != "" && !p.Bool("isError") {
			d.Main().Text("", text, out)
			d.Main().End(out)
		}
	}
	cost := d.spent(meta, out)
	d.TurnEnd(outcome, cost, out)
	d.Idle(out)
}

// tools names those that were used: nothing more is told of them.
func (d *document) tools(summary jsonl.Value, out *sdk.Out) {
	calls, _ := summary.Int("calls")
	if calls == 0 {
		return
	}
	var names []string
	for _, name := range summary.Items("tools") {
		names = append(names, name.Text())
	}
	out.Event(pluginapi.Debug{Level: "info", Message: "tools used: " + strings.Join(names, ", ") + " (" + strconv.FormatInt(calls, 10) + " calls)"})
}

// spent tells tokens and money. Its output has the thoughts in it.
func (d *document) spent(meta jsonl.Value, out *sdk.Out) *pluginapi.Money {
	usage := meta.Get("usage")
	if usage.IsObject() {
		out.Event(pluginapi.TokenUsage{
			InputTokens: usage.IntPtr("input"), OutputTokens: usage.IntPtr("output"),
			CacheReadTokens: usage.IntPtr("cacheRead"), CacheWriteTokens: usage.IntPtr("cacheWrite"),
			ThinkingTokens: usage.IntPtr("reasoningTokens"), Model: meta.Text("model"),
		})
	}
	usd, ok := meta.Float("costUsd")
	if !ok || usd <= 0 {
		return nil
	}
	money := pluginapi.Money{USD: usd}
	out.Event(pluginapi.Cost{Cost: money})
	return &money
}

// outcomeOf reads how it ended; nil is well.
func outcomeOf(doc jsonl.Value) *pluginapi.Outcome {
	message := doc.Text("error", "message")
	if message == "" {
		message = doc.Text("meta", "error", "message")
	}
	kind := doc.Text("error", "kind") + doc.Text("meta", "error", "kind")
	failed := message != "" || doc.Bool("meta", "aborted")
	for _, p := range doc.Items("payloads") {
		if p.Bool("isError") {
			failed = true
			if message == "" {
				message = p.Text("text")
			}
		}
	}
	switch {
	case kind == "context_overflow":
		return &pluginapi.Outcome{Code: string(pluginapi.CodeContextExceeded), Message: message}
	case kind == "timeout":
		// Any failure that OpenClaw tried again until the end is of this kind too.
		if o := reason(message); o.Code != string(pluginapi.CodeAgentFailed) {
			return o
		}
		return &pluginapi.Outcome{Code: string(pluginapi.CodeTimeout), Message: message, Retryable: true}
	case failed:
		return reason(message)
	}
	return nil
}

// complaints are those of the CLI itself.
var complaints = []struct {
	text string
	code pluginapi.Code
}{
	{"No route-compatible authentication source", pluginapi.CodeAuth},
	{"temporarily disabled after a provider auth", pluginapi.CodeAuth},
	{"No API key found", pluginapi.CodeAuth},
	{"authentication failed", pluginapi.CodeAuth},
	{"Thinking level", pluginapi.CodeCapability},
	{"gateway agent requires credentials", pluginapi.CodeConfig},
	{"A Gateway is running for this state directory", pluginapi.CodeConfig},
	{"billing", pluginapi.CodeBilling},
	{"DNS lookup for the provider endpoint", pluginapi.CodeNetwork},
	{"network connection was interrupted", pluginapi.CodeNetwork},
	{"network connection error", pluginapi.CodeNetwork},
	{"provider endpoint is unreachable", pluginapi.CodeNetwork},
	{"proxy or tunnel configuration blocked", pluginapi.CodeNetwork},
	{"provider returned an internal error", pluginapi.CodeOverloaded},
	{"does not recognize option", pluginapi.CodeValidation},
}

// transient are the codes of failures that may pass by themselves.
var transient = []pluginapi.Code{pluginapi.CodeRateLimited, pluginapi.CodeOverloaded, pluginapi.CodeNetwork}

// reason tells errors apart by what is said: there is no code.
func reason(message string) *pluginapi.Outcome {
	status := failure.Status(message)
	if o := failure.Of(status, message); o.Code != string(pluginapi.CodeAgentFailed) {
		return o
	}
	for _, c := range complaints {
		if strings.Contains(message, c.text) {
			return &pluginapi.Outcome{Code: string(c.code), Message: message, Retryable: slices.Contains(transient, c.code)}
		}
	}
	return failure.Of(status, message)
}
