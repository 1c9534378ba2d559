package opencodehttp

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}}) }

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, Adapter{}) }

// Its sessions are OpenCode's, read by the same commands.
func TestSessions(t *testing.T) {
	export, err := os.ReadFile("../opencode/testdata/export.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/session.golden")
	if err != nil {
		t.Fatal(err)
	}
	q := &pluginapi.SessionQuery{
		SessionId: "ses_e06027b3bffeTh0YpPtyAxBzuf", Caller: &pluginapi.Caller{Cwd: "/home/dev/oc-scratch"},
		ExecResults: []*pluginapi.ExecResult{{Stdout: export}},
	}
	var b bytes.Buffer
	if err := (Adapter{}).ReadSession(t.Context(), q, func(p pluginapi.Payload, at time.Time) bool {
		data, err := pluginapi.AppendPayload(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %s\n", at.UTC().Format("15:04:05.000"), p.EventType(), data)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}
