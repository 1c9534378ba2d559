// Package failure classifies a model provider's errors: rate limit, sign-in, billing,
// context, overload, network and an unknown model never look alike, and none looks
// different because another agent passes it on. Agents pass such errors on as a status
// and a text, or as a text alone.
package failure

import (
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/pattern"
)

// Of classifies a failed request of the model by its HTTP status, 0 if that is not
// known, and its text. The words win over the status: providers answer an empty account
// with 400, 402, 403 and 429. The same words have the same code for every agent.
func Of(status int, message string) *pluginapi.Outcome {
	text := strings.ToLower(message)
	o := &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: message}
	for _, k := range kinds {
		if k.matches(status, text) {
			o.Code, o.Retryable = string(k.code), k.retryable
			break
		}
	}
	if o.Code == string(pluginapi.CodeRateLimited) {
		o.RetryAfterMs = RetryAfter(message)
	}
	if o.Code == string(pluginapi.CodeValidation) {
		o.Hint = "see: amux agents models AGENT"
	}
	if o.Message == "" {
		o.Message = pluginapi.Code(o.Code).Info().Meaning
	}
	return o
}

// kind is a row of the classification: it matches a status, or words where the status
// is one of those that they may come with.
type kind struct {
	code      pluginapi.Code
	retryable bool
	statuses  []int
	from      int              // every status from this one; 0: none
	words     []string         // in lower case
	pattern   *pattern.Pattern // of words that are not next to each other
	with      []int            // the words count only with these statuses; none: with all
}

func (k kind) matches(status int, text string) bool {
	if slices.Contains(k.statuses, status) || k.from > 0 && status >= k.from {
		return true
	}
	if len(k.with) > 0 && !slices.Contains(k.with, status) {
		return false
	}
	return slices.ContainsFunc(k.words, func(words string) bool { return strings.Contains(text, words) }) ||
		k.pattern != nil && k.pattern.MatchString(text)
}

// kinds are the rows, the first that matches wins.
var kinds = []kind{
	// Google words the limit of a minute as it words an account without money, and says
	// when to come again.
	{code: pluginapi.CodeRateLimited, retryable: true, pattern: pattern.New(`please retry in \d`)},
	{code: pluginapi.CodeBilling, words: []string{
		"insufficient_quota", "credit balance is too low", "billing_error", "exceeded your current quota", "quota exceeded. check your plan",
		"insufficient credits", "payment required", "billing or credits exhausted"}, statuses: []int{402}},
	{code: pluginapi.CodeContextExceeded, with: []int{0, 400, 413}, words: []string{
		"maximum context length", "context_length_exceeded", "prompt is too long", "contextoverflow", "input token count",
		"exceeds the maximum number of tokens", "context window", "token limit exceeded", "context is too large"}},
	{code: pluginapi.CodeValidation, with: []int{0, 400, 404, 500}, words: []string{
		"model_not_found", "unknown model", "no such model", "invalid model", "issue with the selected model"},
		pattern: pattern.New(`\bmodels?\b[^\n]{0,100}\b(?:not found|does not exist|is not available|not supported for)|^model: \S+$|providermodelnotfound`)},
	{code: pluginapi.CodeAgentFailed, words: []string{
		"content_filter", "safeguards flagged", "prohibited_content", "content policy", "usage policy", "response was blocked"}},
	{code: pluginapi.CodeAuth, statuses: []int{401, 403}, words: []string{
		"invalid x-api-key", "incorrect api key", "invalid api key", "invalid_api_key", "api key not valid", "authentication_error",
		"unauthenticated", "no auth type is selected", "permission_denied", "no api key", "api key is missing", "missing environment variable",
		"not connected to any ai provider"}},
	{code: pluginapi.CodeOverloaded, retryable: true, statuses: []int{503, 529}, words: []string{
		"overloaded", "is at capacity", "experiencing high demand"}},
	{code: pluginapi.CodeRateLimited, retryable: true, statuses: []int{429}},
	{code: pluginapi.CodeRateLimited, retryable: true, with: []int{0}, words: []string{
		"rate limit", "rate_limit", "rate-limit", "resource_exhausted", "too many requests", "usage limit"}},
	{code: pluginapi.CodeNetwork, retryable: true, with: []int{0, 500}, words: []string{
		"econnrefused", "enotfound", "econnreset", "econnaborted", "etimedout", "epipe", "eai_again", "failedtoopensocket", "und_err",
		"fetch failed", "connection error", "connection refused", "connection reset", "connection failed", "connection closed", "connection lost",
		"connection dropped", "unable to connect", "could not connect to", "cannot connect to", "network error", "socket hang up", "other side closed",
		"socket connection was closed", "getaddrinfo", "name resolution", "name or service not known", "temporary failure in name",
		"certificate", "ssl routines", "tls handshake", "self-signed", "self signed", "unable to verify", "error sending request", "stream disconnected",
		"can't reach the model provider", "typo in the url", "premature close", "broken pipe", "unexpected eof", "incomplete chunked read", "peer closed connection", "server disconnected"},
		pattern: pattern.New(`^terminated\b|\bconnection\b[^\n]{0,40}\b(?:reset|closed|refused|lost|dropped)\b`)},
	{code: pluginapi.CodeOverloaded, retryable: true, from: 500},
	{code: pluginapi.CodeOverloaded, retryable: true, with: []int{0}, words: []string{"internal server error", "server_error"}},
}

var statusPattern = pattern.New(`(?i)^\D{0,24}([45]\d\d)\b|\b(?:http|status|status code|error code|last error)[: (]{1,2}([45]\d\d)\b`)

// Status reads the HTTP status in a message: at its beginning, perhaps after a few
// words ("[API Error: 401 …", "429: {…"), or after a word that says what it is
// ("… (HTTP 401)", "last status: 429"); 0 if there is none.
func Status(message string) int {
	m := statusPattern.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		return 0
	}
	return n
}

var retryAfterPattern = pattern.New(`(?i)\bretry[- _]?after(?:[-_ ]?(ms))?["']?[: =]+["']?(\d{1,9}(?:\.\d{1,6})?)\s*(ms\b|s\b|sec|min)?|\b(?:retry|try again) in (\d{1,9}(?:\.\d{1,6})?)\s*(ms\b|s\b|sec|min)?`)

// RetryAfter reads how many milliseconds a provider asks to wait, which some agents pass
// on in words only; 0 is not said. Without a unit they are seconds.
func RetryAfter(message string) uint64 {
	m := retryAfterPattern.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[2]+m[4], 64)
	if err != nil {
		return 0
	}
	switch unit := strings.ToLower(m[1] + m[3] + m[5]); unit {
	case "ms":
	case "min":
		n *= 60_000
	default:
		n *= 1000
	}
	return uint64(n)
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
	return pluginapi.ErrorEvent{Code: pluginapi.Code(o.Code), Message: o.Message, Hint: o.Hint, Recoverable: o.Retryable}
}

// How providers word the two figures of a full context.
var contextPatterns = []struct {
	pattern   *pattern.Pattern
	usedFirst bool
}{
	{pattern.New(`(\d+) tokens(?: \(limit | > )(\d+)`), true},
	{pattern.New(`maximum context length is (\d+) tokens.*?(\d+) tokens`), false},
	{pattern.New(`token count \((\d+)\) exceeds the maximum number of tokens allowed \((\d+)\)`), true},
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
