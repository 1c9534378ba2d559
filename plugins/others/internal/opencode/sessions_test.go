package opencode

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
	if !ok || !needed.ToFile || !slices.Equal(needed.Argv, []string{"opencode", "export", sessionID}) {
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
		"not run":   {&pluginapi.ExecResult{ExitCode: -1}, pluginapi.CodeAgentFailed},
		"cut short": {&pluginapi.ExecResult{Stdout: file(t, "export.json")[:100]}, pluginapi.CodeParse},
		"no object": {&pluginapi.ExecResult{Stdout: []byte("[]")}, pluginapi.CodeParse},
		"no end":    {&pluginapi.ExecResult{Stdout: []byte(`{"messages": [`)}, pluginapi.CodeParse},
	} {
		q.ExecResults[0] = test.result
		some := func(pluginapi.Payload, time.Time) bool { return true }
		if err := (Adapter{}).ReadSession(t.Context(), q, some); !errors.Is(err, test.code) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, id := range []string{"", "--help", "a b"} {
		if err := (Adapter{}).ReadSession(t.Context(), &pluginapi.SessionQuery{SessionId: id}, nil); !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("session %q: got %v", id, err)
		}
	}
}

// An export of 160 MB is read in less than 64 MB, and so far as somebody wants it.
func TestReadSessionHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 160 MB")
	}
	export, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(export)
	fmt.Fprintf(out, `{"info": {"id": "s", "title": "long"}, "other": {"a": [1]}, "messages": [`)
	const messages = 160
	text := strings.Repeat("y", 1<<20)
	for i := range messages {
		fmt.Fprintf(out, `{"info": {"id": "u%d", "role": "user"}, "parts": [{"type": "text", "text": "%d"}]},`, i, i)
		fmt.Fprintf(out, `{"info": {"id": "m%d", "role": "assistant"}, "parts": [{"type": "text", "text": "%s"}]},`, i, text)
	}
	fmt.Fprintf(out, `{"info": {"id": "u", "role": "user"}, "parts": [{"type": "text", "text": "the end"}]}]}`)
	if err := errors.Join(out.Flush(), export.Close()); err != nil {
		t.Fatal(err)
	}
	q := &pluginapi.SessionQuery{SessionId: "s", ExecResults: []*pluginapi.ExecResult{{StdoutFile: export.Name()}}}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, size, last, turns := uint64(0), 0, "", 0
	err = Adapter{}.ReadSession(t.Context(), q, func(p pluginapi.Payload, _ time.Time) bool {
		switch p := p.(type) {
		case pluginapi.UserMessage:
			last = p.Text
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		case pluginapi.MessageStop:
			size += len(p.Text)
		case pluginapi.SessionEnd:
			turns = p.TurnCount
		}
		return true
	})
	if err != nil || last != "the end" || size != messages<<20 || turns != messages+1 {
		t.Errorf("got %v, %d bytes, %d turns, last %q", err, size, turns, last)
	}
	t.Logf("peak %d MB", peak>>20)
	if peak > 64<<20 {
		t.Errorf("it took %d MB", peak>>20)
	}
	n := 0
	if err := (Adapter{}).ReadSession(t.Context(), q, func(pluginapi.Payload, time.Time) bool { n++; return n < 5 }); err != nil || n != 5 {
		t.Errorf("got %v after %d events, of which the fifth was the last that was wanted", err, n)
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
	for _, text := range []string{"{", "[", `[{"id": "s"}`, `[{"id": "s"}, 1]`} {
		q.ExecResults[0] = &pluginapi.ExecResult{Stdout: []byte(text)}
		if err := (Adapter{}).ListSessions(t.Context(), q, nil); !errors.Is(err, pluginapi.CodeParse) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	q.ExecResults[0] = &pluginapi.ExecResult{}
	if err := (Adapter{}).ListSessions(t.Context(), q, nil); err != nil {
		t.Error(err)
	}
	q.ExecResults[0] = &pluginapi.ExecResult{ExitCode: 1}
	if err := (Adapter{}).ListSessions(t.Context(), q, nil); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("got %v", err)
	}
}
