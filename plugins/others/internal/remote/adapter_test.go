package remote

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
	"github.com/amux-dev/amux/sdk/jsonl"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}}) }

func TestClaims(t *testing.T) { adaptertest.Claims(t, Adapter{}.Describe(), "testdata") }

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, Adapter{}) }

// What the host there has written is under origin, in the shape of pluginapi.Origin,
// and what the agent there has given stays where it was.
func TestOrigin(t *testing.T) {
	t.Parallel()
	doc, err := jsonl.ParseObject([]byte(`{"type":"session_start","run_id":"R","seq":7,"time":"2030-01-01T00:00:00Z","agent":"box","session_id":"s",` +
		`"origin":{"run_id":"Q","seq":5,"time":"2029-01-01T00:00:00Z","agent":"claude"}}`))
	if err != nil {
		t.Fatal(err)
	}
	event, ok := carried(doc.Value)
	var got struct {
		SessionID string           `json:"session_id"`
		Origin    pluginapi.Origin `json:"origin"`
	}
	if err := json.Unmarshal(event, &got); err != nil || !ok {
		t.Fatal(err, ok)
	}
	want := pluginapi.Origin{RunID: "R", Seq: 7, Time: "2030-01-01T00:00:00Z", Agent: "box",
		Origin: &pluginapi.Origin{RunID: "Q", Seq: 5, Time: "2029-01-01T00:00:00Z", Agent: "claude"}}
	if diff := cmp.Diff(want, got.Origin); diff != "" || got.SessionID != "s" {
		t.Errorf("session %q (-want +got):\n%s", got.SessionID, diff)
	}
}
