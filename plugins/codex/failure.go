package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// maxOffline is how often in a row the CLI may find no network before the turn
// is given up: by itself it would try for ever. It waits 5 s, then 10 s.
const maxOffline = 3

// trouble is a failed request to the model: the CLI tries again, or the turn ends
// with it.
func (c *conversation) trouble(t *thread, p jsonl.Value, out *sdk.Out) error {
	info := p.Get("error", "codexErrorInfo")
	if !p.Bool("willRetry") {
		if t == c.main {
			c.decoder.failure = failureOf(p.Get("error"), nil)
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
	c.abandon(t, reason, out)
	out.Event(retryEvent(message, reason, &c.decoder.retries))
	if !strings.Contains(message, "waiting for network") {
		c.offline = 0
		return nil
	}
	if c.offline++; c.offline < maxOffline || c.cutBy != nil || t != c.main {
		return nil
	}
	return c.cut(&pluginapi.Outcome{Code: string(pluginapi.CodeNetwork), Message: reason, Retryable: true}, out)
}

var reconnecting = regexp.MustCompile(`Reconnecting\.\.\. (\d+)/(\d+)`)

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
func (c *conversation) turnFailure(turn jsonl.Value) *pluginapi.Outcome {
	switch turn.Text("status") {
	case "completed":
		return nil
	case "interrupted":
		if c.cutBy != nil {
			return c.cutBy
		}
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAborted), Message: "the turn was interrupted"}
	}
	if turn.IsObject("error") {
		now, _ := turn.Int("completedAt")
		return failureOf(turn.Get("error"), c.retryAfter(now))
	}
	if c.decoder.failure != nil {
		return c.decoder.failure
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
		if code == pluginapi.CodeRateLimited && retryAfter != nil && *retryAfter > 0 {
			o.RetryAfterMs = uint64(*retryAfter)
		}
		if o.Message == "" {
			o.Message = code.Info().Meaning
		}
		return o
	}
	switch kind {
	case "contextWindowExceeded":
		return outcome(pluginapi.CodeContextExceeded, false)
	case "usageLimitExceeded":
		// The quota of a key is money, the limit of a subscription is time.
		if strings.HasPrefix(message, "Quota exceeded") {
			return outcome(pluginapi.CodeBilling, false)
		}
		return outcome(pluginapi.CodeRateLimited, true)
	case "sessionBudgetExceeded":
		return outcome(pluginapi.CodeBudgetExceeded, false)
	case "rateLimitExceeded", "flexUnavailable":
		return outcome(pluginapi.CodeRateLimited, true)
	case "serverOverloaded", "policyCapacityUnavailable":
		return outcome(pluginapi.CodeOverloaded, true)
	case "unauthorized":
		return outcome(pluginapi.CodeAuth, false)
	case "internalServerError":
		return outcome(pluginapi.CodeAgentFailed, true)
	}
	switch status := httpStatus(info); {
	case status == 401 || status == 403:
		return outcome(pluginapi.CodeAuth, false)
	case status == 429:
		return outcome(pluginapi.CodeRateLimited, true)
	case status == 402:
		return outcome(pluginapi.CodeBilling, false)
	case status >= 500:
		return outcome(pluginapi.CodeAgentFailed, true)
	case status == 0 && (kind == "httpConnectionFailed" || kind == "responseStreamConnectionFailed" || kind == "responseStreamDisconnected"):
		return outcome(pluginapi.CodeNetwork, true)
	}
	return failureText(message)
}

// failureTexts are the messages by which `codex exec` alone tells failures apart.
var failureTexts = []struct {
	text      string
	code      pluginapi.Code
	retryable bool
}{
	{"status 401", pluginapi.CodeAuth, false},
	{"status 403", pluginapi.CodeAuth, false},
	{"last status: 429", pluginapi.CodeRateLimited, true},
	{"hit your usage limit", pluginapi.CodeRateLimited, true},
	{"Quota exceeded", pluginapi.CodeBilling, false},
	{"ran out of room in the model's context window", pluginapi.CodeContextExceeded, false},
	{"status 529", pluginapi.CodeOverloaded, true},
	{"is at capacity", pluginapi.CodeOverloaded, true},
	{"experiencing high demand", pluginapi.CodeOverloaded, true},
	{"Missing environment variable", pluginapi.CodeAuth, false},
	{"error sending request", pluginapi.CodeNetwork, true},
	{"stream disconnected", pluginapi.CodeNetwork, true},
	{"no rollout found", pluginapi.CodeSessionNotFound, false},
}

// failureText tells failures apart by their words. Some messages are the body of
// the provider's answer, unread.
func failureText(message string) *pluginapi.Outcome {
	o := &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: message}
	if o.Message == "" {
		o.Message = "the turn failed"
	}
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(message), &body) == nil && body.Error.Message != "" {
		o.Message = body.Error.Message
		switch body.Error.Code {
		case "insufficient_quota":
			o.Code = string(pluginapi.CodeBilling)
		case "context_length_exceeded":
			o.Code = string(pluginapi.CodeContextExceeded)
		case "invalid_api_key":
			o.Code = string(pluginapi.CodeAuth)
		}
		return o
	}
	for _, f := range failureTexts {
		if strings.Contains(message, f.text) {
			o.Code, o.Retryable = string(f.code), f.retryable
			return o
		}
	}
	return o
}

// failureEvent is the event for an outcome that is no success.
func (d *decoder) failureEvent(o *pluginapi.Outcome, out *sdk.Out) {
	switch pluginapi.Code(o.Code) {
	case pluginapi.CodeAuth:
		out.Event(pluginapi.AuthError{Message: o.Message, Guidance: strings.Join(authGuidance, "\n")})
	case pluginapi.CodeRateLimited:
		var wait *int64
		if o.RetryAfterMs > 0 {
			ms := int64(o.RetryAfterMs)
			wait = &ms
		}
		out.Event(pluginapi.RateLimitError{Message: o.Message, RetryAfterMS: wait})
	case pluginapi.CodeContextExceeded:
		out.Event(pluginapi.ContextExceeded{MaxTokens: d.window})
	default:
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.Code(o.Code), Message: o.Message, Recoverable: o.Retryable})
	}
}

// startFailures are complaints by which the CLI refuses to start, on stderr.
var startFailures = []struct {
	text string
	code pluginapi.Code
}{
	{"no rollout found", pluginapi.CodeSessionNotFound},
	{"No saved session found", pluginapi.CodeSessionNotFound},
	{"invalid session id", pluginapi.CodeSessionNotFound},
	{"unexpected argument", pluginapi.CodeAgentNotInstalled},
	{"unrecognized subcommand", pluginapi.CodeAgentNotInstalled},
	{"CODEX_HOME", pluginapi.CodeConfig},
	{"rror loading config", pluginapi.CodeConfig},
	{"rror loading default config", pluginapi.CodeConfig},
	{"is no longer supported", pluginapi.CodeConfig},
	{"Missing environment variable", pluginapi.CodeAuth},
}

// startFailure is the outcome of a process that refused to start, nil if its
// complaint is not known.
func startFailure(stderr string) *pluginapi.Outcome {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "WARNING") {
			continue
		}
		for _, f := range startFailures {
			if strings.Contains(line, f.text) {
				line = strings.TrimPrefix(strings.TrimPrefix(line, "Error: "), "error: ")
				return &pluginapi.Outcome{Code: string(f.code), Message: line}
			}
		}
	}
	return nil
}

// crash is the outcome of a process that ended without saying how its work went.
func crash(exit *pluginapi.Exit, stderr string) *pluginapi.Outcome {
	how := "was ended by " + exit.GetSignal()
	if exit.GetSignal() == "" {
		how = fmt.Sprintf("exited with code %d", exit.GetCode())
	}
	message := "codex " + how + " without a result"
	if last := lastLine(stderr); last != "" {
		message += ": " + last
	}
	return &pluginapi.Outcome{Code: string(pluginapi.CodeAgentCrash), Message: message, Retryable: true}
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\r\n ")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
