package host

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

// Every type that amux knows has its struct.
func TestPayloadKnowsEveryType(t *testing.T) {
	t.Parallel()
	for _, name := range pluginapi.Types() {
		p := Event{Type: name, Raw: json.RawMessage(`{"type":"x","seq":1}`)}.Payload()
		if p == nil || p.EventType() != name {
			t.Errorf("the payload of %s is %T", name, p)
		}
	}
	if len(payloads) != len(pluginapi.Types()) {
		t.Errorf("%d payloads for %d types", len(payloads), len(pluginapi.Types()))
	}
}

func TestPayloadHasTheFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event Event
		want  pluginapi.Payload
	}{
		"fields":     {Event{Type: "text_delta", Raw: json.RawMessage(`{"type":"text_delta","delta":"hi","later":1}`)}, pluginapi.TextDelta{Delta: "hi"}},
		"wrong type": {Event{Type: "text_delta", Raw: json.RawMessage(`{"delta":7}`)}, nil},
		"unknown":    {Event{Type: "of_later", Raw: json.RawMessage(`{}`)}, nil},
		"no event":   {Event{}, nil},
	} {
		if d := cmp.Diff(c.want, c.event.Payload()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
