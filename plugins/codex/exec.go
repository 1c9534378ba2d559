package main

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// execConversation is the codec of one process of `codex exec --json`.
type execConversation struct {
	decoder
	resumed bool
	turns   int
	inTurn  bool
	results int
	stopped bool
	cut     bool // the turn was interrupted
	offline int  // tries to reach the network
	gaveUp  *pluginapi.Outcome
	started *pluginapi.Start
	stderr  turn.Stderr
}

func newExecConversation(start *pluginapi.Start) *execConversation {
	opts := start.GetOptions()
	c := &execConversation{started: start, resumed: opts.GetResume() != "" && !opts.GetFork()}
	c.model, c.effort = opts.GetModel(), opts.GetEffort()
	c.threads = map[string]*thread{}
	c.main = &thread{inherits: opts.GetResume() != ""}
	c.order = []*thread{c.main}
	c.version = start.GetProgramVersion()
	return c
}

// Handle turns one input into outputs.
func (c *execConversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		doc, err := jsonl.ParseObject(in.Data)
		if err != nil {
			out.Log("stdout", in.Data)
			return nil
		}
		defer doc.Release()
		if !c.line(doc.Value, out) {
			out.Log("stdout", in.Data)
		}
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
		c.stderr.Add(in.Data)
	case pb.InputKind_INPUT_INTERRUPT:
		c.cut = true
		out.Signal("SIGINT")
	case pb.InputKind_INPUT_STOP_REQUESTED, pb.InputKind_INPUT_TIMEOUT:
		c.stopped = true
	case pb.InputKind_INPUT_SPAWN_FAILED:
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		c.exit(in.Exit, out)
	}
	return nil
}

// line handles a line of the CLI; false means that it is not known.
func (c *execConversation) line(line jsonl.Value, out *sdk.Out) bool {
	switch kind := line.Text("type"); kind {
	case "thread.started":
		c.main.id = line.Text("thread_id")
		out.Event(pluginapi.SessionStart{SessionID: c.main.id, Resumed: c.resumed, Model: c.model, Version: c.version})
	case "turn.started":
		c.inTurn = true
		out.TurnStarted()
		out.Event(pluginapi.TurnStart{TurnIndex: c.turns})
	case "item.started", "item.completed":
		return c.execItem(line.Get("item"), kind == "item.completed", out)
	case "error":
		message := line.Text("message")
		if m := retryText.FindStringSubmatch(message); m != nil {
			if strings.Contains(m[1], "429") {
				out.Event(pluginapi.RateLimited{})
			}
			out.Event(retryEvent(message, m[1], &c.retries))
			if strings.Contains(message, "waiting for network") {
				c.offline++
			}
			if c.offline == maxOffline && c.gaveUp == nil {
				c.gaveUp = &pluginapi.Outcome{Code: string(pluginapi.CodeNetwork), Message: m[1], Retryable: true}
				out.Signal("SIGINT")
			}
		}
		// Another one is the failure of the turn, which follows.
	case "turn.completed":
		c.usageOf(line.Get("usage"), out)
		c.endTurn(&pluginapi.Outcome{}, out)
	case "turn.failed":
		failure := failureText(0, line.Text("error", "message"))
		c.failureEvent(failure, out)
		c.endTurn(failure, out)
	default:
		_, known := ignoredLines[kind]
		return known
	}
	return true
}

// usageOf emits what the turn took. The figures are the thread's, from its
// beginning; what a session that goes on has taken before is not said, so that
// nothing of it can be told.
func (c *execConversation) usageOf(usage jsonl.Value, out *sdk.Out) {
	total, ok := readTokens(usage)
	if !ok || c.main.inherits {
		return
	}
	c.tokens(total.less(c.main.total), out)
	c.main.total = total
}

func (c *execConversation) endTurn(outcome *pluginapi.Outcome, out *sdk.Out) {
	c.results++
	c.closeMessage(c.main, true, out)
	c.closeTools(c.main, "the turn ended before the tool did", out)
	out.Outcome(outcome)
	if c.inTurn {
		c.inTurn = false
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turns})
		c.turns++
	}
	out.Idle()
}

func (c *execConversation) exit(exit *pluginapi.Exit, out *sdk.Out) {
	asked := exit.GetAsked() || c.stopped
	cutOff := c.results == 0
	died := exit.GetSignal() != "" && !asked
	c.closeAll("the agent ended before the tool did", out)
	switch {
	case cutOff && c.gaveUp != nil:
		c.failureEvent(c.gaveUp, out)
		out.Outcome(c.gaveUp)
	case cutOff && (asked || c.cut):
		if c.cut {
			out.Event(pluginapi.Interrupted{})
		}
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: "codex was stopped"})
	case cutOff || died:
		d := death(exit, &c.stderr, c.main.id != "", c.started)
		if !cutOff {
			d.Refusals = nil
		}
		d.Tell(authGuidance, out)
	}
	if c.inTurn {
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turns})
		c.turns++
	}
	if c.main.id != "" {
		out.Event(pluginapi.SessionEnd{SessionID: c.main.id, TurnCount: c.turns})
	}
}
