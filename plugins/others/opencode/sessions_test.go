package opencode

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

func file(t *testing.T, name string) []byte {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const sessionID = "ses_e06027b3bffeTh0YpPtyAxBzuf"

// An export that the real CLI has printed.
func TestReadSession(t *testing.T) {
	q := &pluginapi.SessionQuery{SessionId: sessionID, Caller: &pluginapi.Caller{Cwd: "/home/dev/oc-scratch"}}
	needed, ok := errors.AsType[*sdk.ExecNeeded](Adapter{}.ReadSession(t.Context(), q, nil))
	if !ok || !slices.Equal(needed.Argv, []string{"opencode", "export", sessionID}) {
		t.Fatalf("asked for %v", needed)
	}
	q.ExecResults = []*pluginapi.ExecResult{{Argv: needed.Argv, Stdout: file(t, "export.json")}}
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
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("testdata/session.golden", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(file(t, "session.golden")), b.String()); diff != "" {
		t.Error(diff)
	}
	for name, test := range map[string]struct {
		result *pluginapi.ExecResult
		code   pluginapi.Code
	}{
		"missing":   {&pluginapi.ExecResult{ExitCode: 1}, pluginapi.CodeSessionNotFound},
		"cut short": {&pluginapi.ExecResult{Stdout: file(t, "export.json")[:100]}, pluginapi.CodeParse},
	} {
		q.ExecResults[0] = test.result
		if err := (Adapter{}).ReadSession(t.Context(), q, nil); !errors.Is(err, test.code) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, id := range []string{"", "--help", "a b"} {
		if err := (Adapter{}).ReadSession(t.Context(), &pluginapi.SessionQuery{SessionId: id}, nil); !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("session %q: got %v", id, err)
		}
	}
}

func TestListSessions(t *testing.T) {
	q := &pluginapi.SessionsQuery{Caller: &pluginapi.Caller{Cwd: "/home/dev/oc-scratch"}, Limit: 2}
	if _, ok := errors.AsType[*sdk.ExecNeeded](Adapter{}.ListSessions(t.Context(), q, nil)); !ok {
		t.Fatal("it did not ask for a command")
	}
	q.ExecResults = []*pluginapi.ExecResult{{Stdout: file(t, "list.json")}}
	var got []*pluginapi.SessionSummary
	if err := (Adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool { got = append(got, s); return true }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Id != "ses_e05e59517ffeZHiVsPV74ZRESY" || got[0].UpdatedUnixMs != 1795197399676 {
		t.Errorf("got %v", got)
	}
	q.Caller.Cwd = "/elsewhere"
	if err := (Adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool { t.Errorf("got %v", s); return true }); err != nil {
		t.Error(err)
	}
	q.ExecResults[0] = &pluginapi.ExecResult{Stdout: []byte("{")}
	if err := (Adapter{}).ListSessions(t.Context(), q, nil); !errors.Is(err, pluginapi.CodeParse) {
		t.Errorf("got %v", err)
	}
	q.ExecResults[0] = &pluginapi.ExecResult{ExitCode: 1}
	if err := (Adapter{}).ListSessions(t.Context(), q, nil); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("got %v", err)
	}
}
