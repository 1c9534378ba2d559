package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/turn"
)

// maxOffline is how often in a row the CLI may find no network before the turn
// is given up: by itself it would try forever. It waits 5 s, then 10 s.
const maxOffline = 3

// trouble is a failed request to the model: the CLI tries again, or the turn ends
// with it.
func (c *conversation) trouble(t *thread, p jsonl.Value, out *sdk.Out) error {
	info := p.Get("error", "codexErrorInfo")
	if !p.Bool("willRetry") {
		if t == c.main {
			c.failure = failureOf(p.Get("error"), nil)
		}
		return nil
	}
	message := p.Text("error", "message")
	reason := p.Text("error", "additionalDetails")
	if reason == "" {
		reason = message
	}
	if httpStatus(info) == 429 {
		out.Event(pluginapi.RateLimited{})
	}
	c.Stream(t.parent).Abandon(reason, out)
	t.thinks = false
	out.Event(retryEvent(message, reason, &c.retries))
	if !strings.Contains(message, "waiting for network") {
		c.offline = 0
		return nil
	}
	if why := c.lost(reason); why != nil && t == c.main {
		return c.cut(why, out)
	}
	return nil
}

var reconnecting = pattern.New(`Reconnecting\.\.\. (\d+)/(\d+)`)

// retryEvent reads "Reconnecting... 1/5"; without figures the tries are counted.
func retryEvent(message, reason string, count *int) pluginapi.Retry {
	*count++
	retry := pluginapi.Retry{Attempt: *count, Reason: reason}
	if m := reconnecting.FindStringSubmatch(message); m != nil {
		retry.Attempt, _ = strconv.Atoi(m[1])
		if most, err := strconv.Atoi(m[2]); err == nil {
			retry.MaxAttempts = &most
		}
	}
	return retry
}

// turnFailure reads the outcome of a turn; nil is success.
func (c *conversation) turnFailure(ended jsonl.Value) *pluginapi.Outcome {
	switch ended.Text("status") {
	case "completed":
		return nil
	case "interrupted":
		if c.cutBy != nil {
			return c.cutBy
		}
		return turn.Aborted()
	}
	if ended.IsObject("error") {
		now, _ := ended.Int("completedAt")
		return failureOf(ended.Get("error"), c.retryAfter(now))
	}
	if c.failure != nil {
		return c.failure
	}
	return &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: "the turn failed"}
}

// httpStatus is the status that an error tells; 0 if none.
func httpStatus(info jsonl.Value) int64 {
	for _, detail := range info.Fields() {
		if status, ok := detail.Int("httpStatusCode"); ok {
			return status
		}
	}
	return 0
}

// failureOf puts an error of the CLI into a code. retryAfter is what the account's
// limits say, nil if nothing.
func failureOf(e jsonl.Value, retryAfter *int64) *pluginapi.Outcome {
	info := e.Get("codexErrorInfo")
	message := e.Text("message")
	kind := info.Text()
	if kind == "" {
		for name := range info.Fields() {
			kind = name
		}
	}
	outcome := func(code pluginapi.Code, retryable bool) *pluginapi.Outcome {
		o := &pluginapi.Outcome{Code: string(code), Message: message, Retryable: retryable}
		if o.Message == "" {
			o.Message = code.Info().Meaning
		}
		return o
	}
	if kind == "sessionBudgetExceeded" {
		return outcome(pluginapi.CodeBudgetExceeded, false)
	}
	o := failureText(int(httpStatus(info)), message)
	if o.Code == string(pluginapi.CodeAgentFailed) && !o.Retryable {
		// The words say nothing: the CLI's own kind does.
		switch kind {
		case "contextWindowExceeded":
			o = outcome(pluginapi.CodeContextExceeded, false)
		case "usageLimitExceeded", "rateLimitExceeded", "flexUnavailable":
			o = outcome(pluginapi.CodeRateLimited, true)
		case "serverOverloaded", "policyCapacityUnavailable", "internalServerError":
			o = outcome(pluginapi.CodeOverloaded, true)
		case "unauthorized":
			o = outcome(pluginapi.CodeAuth, false)
		case "httpConnectionFailed", "responseStreamConnectionFailed", "responseStreamDisconnected":
			if !strings.Contains(message, "content_filter") {
				o = outcome(pluginapi.CodeNetwork, true)
			}
		}
	}
	if o.Code == string(pluginapi.CodeRateLimited) && retryAfter != nil && *retryAfter > 0 {
		o.RetryAfterMs = uint64(*retryAfter)
	}
	return o
}

// failureText classifies a message by its words, in the same way for both drivers. Some
// messages are the body of the provider's answer, unread.
func failureText(status int, message string) *pluginapi.Outcome {
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(message), &body) == nil && body.Error.Message != "" {
		o := failure.Of(status, body.Error.Code+": "+body.Error.Message)
		o.Message = body.Error.Message
		return o
	}
	if message == "" {
		message = "the turn failed"
	}
	if strings.Contains(message, "no rollout found") {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: message}
	}
	if status == 0 {
		status = failure.Status(message)
	}
	return failure.Of(status, message)
}

// refusals are what the CLI prints to stderr when it refuses to start.
var refusals = []turn.Refusal{
	{Text: "no rollout found", Code: pluginapi.CodeSessionNotFound},
	{Text: "No saved session found", Code: pluginapi.CodeSessionNotFound},
	{Text: "invalid session id", Code: pluginapi.CodeSessionNotFound},
	{Text: "unrecognized subcommand", Code: pluginapi.CodeAgentNotInstalled, Hint: "this codex is too old; amux is tested with " + testedVersion},
	{Text: "CODEX_HOME", Code: pluginapi.CodeConfig},
	{Text: "rror loading config", Code: pluginapi.CodeConfig},
	{Text: "rror loading default config", Code: pluginapi.CodeConfig},
	{Text: "is no longer supported", Code: pluginapi.CodeConfig},
	{Text: "Missing environment variable", Code: pluginapi.CodeAuth},
}

// agentEnded is why a tool has no result when the process is gone.
const agentEnded = "the agent ended before the tool did"

// base is what the conversations of both drivers begin with.
func base(start *pluginapi.Start) turn.Base {
	return turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: testedVersion}
}
