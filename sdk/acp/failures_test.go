package acp

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonrpc"
)

// TestAuthRequired: the protocol's own code tells that nobody is signed in, also to an
// adapter that reads errors in its own way, unless the words name another cause.
func TestAuthRequired(t *testing.T) {
	byWords := func(e *jsonrpc.Error) *pluginapi.Outcome { return failure.Of(0, e.Message) }
	for _, f := range []Failures{{}, {Request: byWords}} {
		for message, want := range map[string]pluginapi.Code{
			"Choose a provider first":                pluginapi.CodeAuth,
			"Your credit balance is too low for it.": pluginapi.CodeBilling,
		} {
			if o := f.outcome(&jsonrpc.Error{Code: authRequired, Message: message}); o.Code != string(want) || o.Message != message {
				t.Errorf("%q: %s %q, want %s", message, o.Code, o.Message, want)
			}
		}
	}
}
