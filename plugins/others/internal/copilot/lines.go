package copilot

import (
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// once is the codec of one process with the driver json.
type once struct {
	skills map[string]bool         // that were told
	loaded []pluginapi.SkillLoaded // before the session was
	turn.Base
	talk
	session string // asked for, or made by the plan
	resumed bool

	tries   int
	failure *pluginapi.Outcome
	done    bool // the line result has come
}

func newOnce(start *pluginapi.Start) *once {
	o := start.GetOptions()
	c := &once{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: testedVersion},
		session: start.GetSessionId(), resumed: o.GetResume() != "",
	}
	c.talk = newTalk(&c.Writer)
	c.Effort = o.GetEffort()
	c.Prompts = 1 // in the plan
	return c
}

// Handle turns one input into outputs.
func (c *once) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_COLLECTED:
		c.tokens(in.Data, out)
	case pb.InputKind_INPUT_EXIT:
		// One that is stopped may exit without its last line.
		if c.done || c.failure != nil {
			c.StepEnd(out)
			c.TurnEnd(c.failure, nil, out)
		}
		c.Base.Handle(in, out)
	default:
		c.HandleOnce(in, out, c.line)
	}
	return nil
}

// ignored are the lines that are known and give no event, with the reason.
var ignored = map[string]string{
	"agent.interrupted":                 "abort tells it",
	"assistant.idle":                    "result follows",
	"assistant.message_start":           "its first piece follows",
	"assistant.reasoning":               "its pieces were told",
	"model.call_final_result":           "what the calls of a step came to; the step tells it",
	"model.call_finished":               "the message follows",
	"model.call_start":                  "the step has begun",
	"session.autopilot_stopped":         "the turn ends",
	"session.background_tasks_changed":  "tells nothing but that; some thirty of them for each command",
	"session.mcp_servers_loaded":        "the CLI's own settings",
	"session.mcp_server_status_changed": "the CLI's own settings",
	"session.mcp_server_tools_loaded":   "the CLI's own settings",
	"session.mode_notice_delivered":     "what the model was told of the mode",
	"session.tools_updated":             "the model, which is told with each message",
	"subagent.completed":                "the result of its tool tells it",
	"subagent.configured":               "subagent.started tells it",
	"subagent.failed":                   "the error of its tool tells it",
	"tool.shell_output":                 "tool.execution_partial_result has the same",
	"user.message":                      "our own prompt come back",
}

func (c *once) line(line jsonl.Value, out *sdk.Out) bool {
	kind := string(line.Bytes("type"))
	data := line.Get("data")
	if kind == "result" {
		c.begin(line.Text("sessionId"), out)
		c.done = true
		if code, _ := line.Int("exitCode"); code != 0 && c.failure == nil {
			c.failure = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: "copilot ended with code " + strconv.FormatInt(code, 10) + " and did not say why"}
		}
		return true
	}
	if _, known := ignored[kind]; known {
		return true
	}
	main := line.Text("agentId") == ""
	switch kind {
	case "assistant.turn_start":
		if main {
			c.begin("", out)
			c.StepStart(out)
		}
	case "assistant.turn_end":
		if main {
			c.StepEnd(out)
		}
	case "assistant.turn_retry":
		c.tries++
		c.Stream(c.parent(line)).Abandon(data.Text("reason"), out)
		out.Event(pluginapi.Retry{Attempt: c.tries, Reason: data.Text("reason")})
		if data.Text("reason") == "rate_limit" {
			out.Event(pluginapi.RateLimited{})
		}
	case "model.call_failure":
		out.Event(pluginapi.Debug{Level: "info", Message: data.Text("errorMessage")})
	case "session.skills_loaded":
		for _, skill := range data.Items("skills") {
			if c.skills[skill.Text("name")] {
				continue // told again when they change
			}
			if c.skills == nil {
				c.skills = map[string]bool{}
			}
			c.skills[skill.Text("name")] = true
			c.loaded = append(c.loaded, pluginapi.SkillLoaded{SkillName: skill.Text("name"), Source: skill.Text("source")})
		}
		c.tellSkills(out)
	case "session.info", "session.warning":
		level := "info"
		if kind == "session.warning" {
			level = "warn"
		}
		out.Event(pluginapi.Debug{Level: level, Message: data.Text("message")})
	case "session.error":
		status, answered := data.Int("statusCode")
		c.failure = reason(int(status), data.Text("message"))
		if code, known := kinds[data.Text("errorType")]; known && !answered {
			c.failure.Code, c.failure.Retryable = string(code), code == pluginapi.CodeRateLimited
		}
	case "abort":
		c.failure = turn.Aborted()
		c.Main().Abort(out)
	default:
		if kind == "assistant.message" {
			c.tries = 0
		}
		return c.talk.line(line, out)
	}
	return true
}

// kinds are errors that the CLI finds by itself, without an answer of a provider's: by
// the schema of its lines.
var kinds = map[string]pluginapi.Code{
	"authentication": pluginapi.CodeAuth, "authorization": pluginapi.CodeAuth, "quota": pluginapi.CodeBilling,
	"rate_limit": pluginapi.CodeRateLimited, "context_limit": pluginapi.CodeContextExceeded,
}

// begin tells the session, and the turn. The plan knows the id; only the last line
// names one that it did not.
func (c *once) begin(id string, out *sdk.Out) {
	if id == "" {
		id = c.session
	}
	if c.Session == "" && id != "" {
		c.Session = id
		out.Event(pluginapi.SessionStart{SessionID: id, Resumed: c.resumed})
		if c.resumed {
			out.Event(pluginapi.SessionResume{SessionID: id})
		}
	}
	c.tellSkills(out)
	c.TurnStart(out)
}

// tellSkills tells the skills that are loaded, once the session is told.
func (c *once) tellSkills(out *sdk.Out) {
	if c.Session == "" {
		return
	}
	for _, skill := range c.loaded {
		out.Event(skill)
	}
	c.loaded = nil
}

// tokens reads the file of --usage-output-file.
func (c *once) tokens(content []byte, out *sdk.Out) {
	doc, err := jsonl.ParseObject(content)
	if err != nil {
		return // it did not get as far as to write it
	}
	defer doc.Release()
	for model, m := range doc.Fields("modelMetrics") {
		out.Event(tokens(m.Get("usage"), model))
	}
}

func tokens(u jsonl.Value, model string) pluginapi.TokenUsage {
	t := pluginapi.TokenUsage{
		InputTokens: u.IntPtr("inputTokens"), OutputTokens: u.IntPtr("outputTokens"), ThinkingTokens: u.IntPtr("reasoningTokens"),
		CacheReadTokens: u.IntPtr("cacheReadTokens"), CacheWriteTokens: u.IntPtr("cacheWriteTokens"), Model: model,
	}
	withoutCache(&t)
	return t
}

// withoutCache takes from the input what came from a cache or went there.
func withoutCache(u *pluginapi.TokenUsage) {
	if u.InputTokens == nil {
		return
	}
	n := *u.InputTokens
	for _, cached := range []*int64{u.CacheReadTokens, u.CacheWriteTokens} {
		if cached != nil {
			n -= *cached
		}
	}
	n = max(n, 0)
	u.InputTokens = &n
}
