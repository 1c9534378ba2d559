package failure_test

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/failure"
)

// Messages that real agents were seen to pass on.
func TestOf(t *testing.T) {
	for _, test := range []struct {
		status    int
		message   string
		code      pluginapi.Code
		retryable bool
	}{
		{401, "Incorrect API key provided: sk-test.", pluginapi.CodeAuth, false},
		{403, "The caller does not have permission", pluginapi.CodeAuth, false},
		{400, "API key not valid. Please pass a valid API key.", pluginapi.CodeAuth, false},
		{0, "No auth type is selected. Please configure an auth type", pluginapi.CodeAuth, false},
		{429, "Rate limit exceeded, please retry later", pluginapi.CodeRateLimited, true},
		{429, `{"type":"insufficient_quota","message":"You exceeded your current quota"}`, pluginapi.CodeBilling, false},
		{400, "Your credit balance is too low to access the Anthropic API.", pluginapi.CodeBilling, false},
		{400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.", pluginapi.CodeContextExceeded, false},
		{400, "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).", pluginapi.CodeContextExceeded, false},
		{400, "prompt is too long: 205000 tokens > 200000 maximum", pluginapi.CodeContextExceeded, false},
		{529, "Overloaded", pluginapi.CodeOverloaded, true},
		{503, "The model is overloaded.", pluginapi.CodeOverloaded, true},
		{500, "Internal server error", pluginapi.CodeAgentFailed, true},
		{0, "Connection error. (cause: connect ECONNREFUSED 127.0.0.1:1)", pluginapi.CodeNetwork, true},
		{404, "model not found", pluginapi.CodeAgentFailed, false},
		{0, "", pluginapi.CodeAgentFailed, false},
	} {
		o := failure.Of(test.status, test.message)
		if o.Code != string(test.code) || o.Retryable != test.retryable || o.Message == "" {
			t.Errorf("%d %q: got %v", test.status, test.message, o)
		}
	}
}

func TestStatus(t *testing.T) {
	for message, want := range map[string]int{
		"401 Incorrect API key":                 401,
		`429: {"message":"x"}`:                  429,
		"[API Error: 500 x]":                    500,
		"prompt is too long: 205000 tokens":     0,
		"HTTP 503":                              503,
		"port 4011 is taken":                    0,
		"":                                      0,
		"a long text before it says status 401": 0,
	} {
		if got := failure.Status(message); got != want {
			t.Errorf("%q: got %d, want %d", message, got, want)
		}
	}
}

func TestEvent(t *testing.T) {
	for message, want := range map[string][2]int64{
		"prompt is too long: 205000 tokens > 200000 maximum":                                                     {205000, 200000},
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens": {150000, 128000},
		"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).":                {1050000, 1048576},
	} {
		e, ok := failure.Event(failure.Of(400, message), nil).(pluginapi.ContextExceeded)
		if !ok || e.UsedTokens == nil || e.MaxTokens == nil || *e.UsedTokens != want[0] || *e.MaxTokens != want[1] {
			t.Errorf("%q: got %+v", message, e)
		}
	}
	if e, ok := failure.Event(failure.Of(401, "x"), []string{"a", "b"}).(pluginapi.AuthError); !ok || e.Guidance != "a\nb" {
		t.Errorf("got %+v", e)
	}
	limited := failure.Of(429, "x")
	limited.RetryAfterMs = 2000
	if e, ok := failure.Event(limited, nil).(pluginapi.RateLimitError); !ok || e.RetryAfterMS == nil || *e.RetryAfterMS != 2000 {
		t.Errorf("got %+v", e)
	}
	if e, ok := failure.Event(failure.Of(500, "x"), nil).(pluginapi.ErrorEvent); !ok || !e.Recoverable {
		t.Errorf("got %+v", e)
	}
}
