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
		{0, "Gemini API key is missing or not configured.", pluginapi.CodeAuth, false},
		{0, "Hermes is not connected to any AI provider yet. Run `hermes model` to pick one.", pluginapi.CodeAuth, false},
		{0, "No auth type is selected. Please configure an auth type", pluginapi.CodeAuth, false},
		{429, "Rate limit exceeded, please retry later", pluginapi.CodeRateLimited, true},
		{429, `{"type":"insufficient_quota","message":"You exceeded your current quota"}`, pluginapi.CodeBilling, false},
		{400, "Your credit balance is too low to access the Anthropic API.", pluginapi.CodeBilling, false},
		{400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.", pluginapi.CodeContextExceeded, false},
		{400, "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).", pluginapi.CodeContextExceeded, false},
		{400, "prompt is too long: 205000 tokens > 200000 maximum", pluginapi.CodeContextExceeded, false},
		{529, "Overloaded", pluginapi.CodeOverloaded, true},
		{503, "The model is overloaded.", pluginapi.CodeOverloaded, true},
		{500, "Internal server error", pluginapi.CodeOverloaded, true},
		{0, "We’re currently experiencing high demand, which may cause temporary errors.", pluginapi.CodeOverloaded, true},
		{500, "We’re currently experiencing high demand, which may cause temporary errors.", pluginapi.CodeOverloaded, true},
		{0, "Selected model is at capacity. Please try a different model.", pluginapi.CodeOverloaded, true},
		{402, "Insufficient credits. Add more to go on.", pluginapi.CodeBilling, false},
		{429, "Request rejected (429) · You exceeded your current quota, please check your plan and billing details.", pluginapi.CodeBilling, false},
		{0, "Quota exceeded. Check your plan and billing details.", pluginapi.CodeBilling, false},
		{429, "You exceeded your current quota, please check your plan and billing details. Please retry in 12.5s.", pluginapi.CodeRateLimited, true},
		{0, "You've hit your usage limit. Try again in 3 hours.", pluginapi.CodeRateLimited, true},
		{0, "terminated", pluginapi.CodeNetwork, true},
		{0, "terminated: other side closed (UND_ERR_SOCKET)", pluginapi.CodeNetwork, true},
		{0, "The socket connection was closed unexpectedly.", pluginapi.CodeNetwork, true},
		{0, "stream disconnected before completion: error sending request", pluginapi.CodeNetwork, true},
		{0, "stream disconnected before completion: Incomplete response returned, reason: content_filter", pluginapi.CodeAgentFailed, false},
		{0, "Connection error. (cause: DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate)", pluginapi.CodeNetwork, true},
		{0, "getaddrinfo EAI_AGAIN provider.invalid", pluginapi.CodeNetwork, true},
		{404, "The model `no-such-model` does not exist or you do not have access to it.", pluginapi.CodeValidation, false},
		{0, "models/no-such-model is not found for API version v1beta, or is not supported for generateContent.", pluginapi.CodeValidation, false},
		{404, "There's an issue with the selected model (no-such-model). It may not exist or you may not have access to it.", pluginapi.CodeValidation, false},
		{500, "models/no-such-model is not found for API version v1beta, or is not supported for generateContent.", pluginapi.CodeValidation, false},
		{404, "model: no-such-model", pluginapi.CodeValidation, false},
		{0, "Model not found: fake/no-such-model", pluginapi.CodeValidation, false},
		{0, "Provider finish_reason: content_filter", pluginapi.CodeAgentFailed, false},
		{400, "unsupported parameter", pluginapi.CodeAgentFailed, false},
		{0, "Connection error. (cause: connect ECONNREFUSED 127.0.0.1:1)", pluginapi.CodeNetwork, true},
		{404, "model not found", pluginapi.CodeValidation, false},
		{404, "page not found", pluginapi.CodeAgentFailed, false},
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
		"a long text before it says 401 things": 0,
		"a long text before it says status 401": 401,
		"exceeded retry limit, last status: 429 Too Many": 429,
		"provider refused the request for all (HTTP 403)": 403,
		"Error code: 404 - {'error': {}}":                 404,
	} {
		if got := failure.Status(message); got != want {
			t.Errorf("%q: got %d, want %d", message, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for message, want := range map[string]uint64{
		"Please retry in 12.5s.":               12500,
		"429 Too Many Requests retry-after=30": 30000,
		`{"retry-after-ms": "1500"}`:           1500,
		"retry after 2 min":                    120000,
		"try again in 20s":                     20000,
		"Rate limit exceeded, retry later":     0,
		"":                                     0,
	} {
		if got := failure.RetryAfter(message); got != want {
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
	if e, ok := failure.Event(failure.Of(404, "model not found"), nil).(pluginapi.ErrorEvent); !ok || e.Hint == "" {
		t.Errorf("got %+v", e)
	}
	if e, ok := failure.Event(failure.Of(500, "x"), nil).(pluginapi.ErrorEvent); !ok || !e.Recoverable {
		t.Errorf("got %+v", e)
	}
}
