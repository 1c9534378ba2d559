// Package failure reads what a model provider's errors mean: rate limit, sign-in,
// billing, context, overload and network never look alike. Agents pass such errors
// on as a status and a text, or as a text alone.
package failure

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Of tells a failed request of the model by its HTTP status, 0 if that is not
// known, and its text.
func Of(status int, message string) *pluginapi.Outcome {
	code, retryable := kind(status, strings.ToLower(message))
	if message == "" {
		message = code.Info().Meaning
	}
	return &pluginapi.Outcome{Code: string(code), Message: message, Retryable: retryable}
}

func kind(status int, text string) (code pluginapi.Code, retryable bool) {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("insufficient_quota", "credit balance is too low", "billing_error", "exceeded your current quota"):
		return pluginapi.CodeBilling, false
	case (status == 400 || status == 413 || status == 0) && has(
		"maximum context length", "context_length_exceeded", "prompt is too long", "contextoverflow",
		"input token count", "exceeds the maximum number of tokens", "context window", "token limit exceeded", "context is too large"):
		return pluginapi.CodeContextExceeded, false
	case status == 401 || status == 403 || has("invalid x-api-key", "incorrect api key", "invalid api key", "api key not valid",
		"authentication_error", "unauthenticated", "no auth type is selected", "permission_denied"):
		return pluginapi.CodeAuth, false
	case status == 529 || status == 503 || has("overloaded"):
		return pluginapi.CodeOverloaded, true
	case status == 429 || status == 0 && has("rate limit", "rate_limit", "resource_exhausted", "too many requests"):
		return pluginapi.CodeRateLimited, true
	case (status == 0 || status == 500) && has("econnrefused", "enotfound", "econnreset", "etimedout", "fetch failed", "connection error",
		"connection refused", "unable to connect", "network error", "socket hang up", "eai_again", "failedtoopensocket"):
		return pluginapi.CodeNetwork, true
	}
	return pluginapi.CodeAgentFailed, status >= 500
}

var statusPattern = regexp.MustCompile(`^\D{0,24}([45]\d\d)\b`)

// Status reads the HTTP status with which a message begins, perhaps after a few
// words ("[API Error: 401 …", "429: {…"); 0 if there is none.
func Status(message string) int {
	m := statusPattern.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}

// Event is the event for an outcome that is no success.
func Event(o *pluginapi.Outcome, guidance []string) pluginapi.Payload {
	switch pluginapi.Code(o.Code) {
	case pluginapi.CodeAuth:
		return pluginapi.AuthError{Message: o.Message, Guidance: strings.Join(guidance, "\n")}
	case pluginapi.CodeRateLimited:
		event := pluginapi.RateLimitError{Message: o.Message}
		if ms := int64(o.RetryAfterMs); ms > 0 {
			event.RetryAfterMS = &ms
		}
		return event
	case pluginapi.CodeContextExceeded:
		used, most := ContextTokens(o.Message)
		return pluginapi.ContextExceeded{UsedTokens: used, MaxTokens: most}
	}
	return pluginapi.ErrorEvent{Code: pluginapi.Code(o.Code), Message: o.Message, Recoverable: o.Retryable}
}

// How providers word the two figures of a full context.
var contextPatterns = []struct {
	pattern   *regexp.Regexp
	usedFirst bool
}{
	{regexp.MustCompile(`(\d+) tokens(?: \(limit | > )(\d+)`), true},
	{regexp.MustCompile(`maximum context length is (\d+) tokens.*?(\d+) tokens`), false},
	{regexp.MustCompile(`token count \((\d+)\) exceeds the maximum number of tokens allowed \((\d+)\)`), true},
}

// ContextTokens reads the figures of a message about a full context, which
// providers have in words only; nil is not told.
func ContextTokens(message string) (used, most *int64) {
	for _, p := range contextPatterns {
		m := p.pattern.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		first, err1 := strconv.ParseInt(m[1], 10, 64)
		second, err2 := strconv.ParseInt(m[2], 10, 64)
		if err1 != nil || err2 != nil {
			return nil, nil
		}
		if p.usedFirst {
			return &first, &second
		}
		return &second, &first
	}
	return nil, nil
}
