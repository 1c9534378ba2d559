package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

const (
	sessionID = "20261122_032955_b3af95"
	listed    = "Preview   Workspace   Last Active   Src   ID\n"
)

// exported is what the real CLI has printed of two sessions, but for the system prompt.
func exported(t *testing.T) (both, one []byte) {
	both, err := os.ReadFile("testdata/export.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return both, both[slices.Index(both, '\n')+1:]
}

func results(code int32, said string, then ...*pluginapi.ExecResult) []*pluginapi.ExecResult {
	return append([]*pluginapi.ExecResult{{ExitCode: code, Stdout: []byte(said)}}, then...)
}

// What may write is asked for only where there is something to read.
func TestExportIsAskedFor(t *testing.T) {
	for name, ask := range map[string]func([]*pluginapi.ExecResult) error{
		"sessions export -": func(r []*pluginapi.ExecResult) error {
			return adapter{}.ListSessions(t.Context(), &pluginapi.SessionsQuery{ExecResults: r}, nil)
		},
		"sessions export - --session-id " + sessionID: func(r []*pluginapi.ExecResult) error {
			err := adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{SessionId: sessionID, ExecResults: r}, func(pluginapi.Payload, time.Time) bool { return true })
			if errors.Is(err, pluginapi.CodeSessionNotFound) {
				err = nil
			}
			return err
		},
	} {
		first, ok := errors.AsType[*sdk.ExecNeeded](ask(nil))
		if !ok || strings.Join(first.Argv, " ") != "hermes sessions list --limit 1" || first.ToFile {
			t.Errorf("%s: at first it asks for %v", name, first)
		}
		second, ok := errors.AsType[*sdk.ExecNeeded](ask(results(0, listed)))
		if !ok || strings.Join(second.Argv, " ") != "hermes "+name || !second.ToFile {
			t.Errorf("%s: then it asks for %v", name, second)
		}
		if err := ask(results(0, "No sessions found.\n")); err != nil {
			t.Errorf("%s of nothing: %v", name, err)
		}
		old := ask(results(1, "Error: session database needs migration — run any writing hermes command first (no column)\n"))
		if !errors.Is(old, pluginapi.CodeAgentFailed) || !strings.Contains(old.Error(), "needs migration") {
			t.Errorf("%s of an old store: %v", name, old)
		}
		long := ask(results(0, listed, &pluginapi.ExecResult{Stdout: []byte("Error: This session is too long\n")}))
		if !errors.Is(long, pluginapi.CodeAgentFailed) || !strings.Contains(long.Error(), "too long") {
			t.Errorf("%s of too much: %v", name, long)
		}
		for code, export := range map[pluginapi.Code]*pluginapi.ExecResult{
			pluginapi.CodeAgentFailed: {ExitCode: -1},
			pluginapi.CodeParse:       {Stdout: []byte(`{"id": "` + sessionID + `", "messages": [{"role": "us`)},
		} {
			if err := ask(results(0, listed, export)); !errors.Is(err, code) {
				t.Errorf("%s: got %v, want %s", name, err, code)
			}
		}
	}
}

func TestListSessions(t *testing.T) {
	both, _ := exported(t)
	of := func(q *pluginapi.SessionsQuery) (titles []string) {
		q.ExecResults = results(0, listed, &pluginapi.ExecResult{Stdout: both})
		if err := (adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool {
			titles = append(titles, fmt.Sprint(s.Id, " ", s.Title, " ", s.Cwd, " ", s.Model, " ", s.Turns, " ", s.CreatedUnixMs, " ", s.UpdatedUnixMs))
			return true
		}); err != nil {
			t.Error(err)
		}
		return titles
	}
	want := []string{
		"20261122_033009_f65b62 [fm:thinking] /home/dev/work fake-model 1 1795318211944 1795318213259",
		sessionID + " [fm:story] /home/dev/work fake-model 2 1795318199079 1795318205939",
	}
	if got := of(&pluginapi.SessionsQuery{AllProjects: true}); !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	if got := of(&pluginapi.SessionsQuery{Caller: &pluginapi.Caller{Cwd: "/home/dev/work"}, Limit: 1}); !slices.Equal(got, want[:1]) {
		t.Errorf("the newest of a folder: %q", got)
	}
	if got := of(&pluginapi.SessionsQuery{Caller: &pluginapi.Caller{Cwd: "/home/dev"}}); len(got) > 0 {
		t.Errorf("another folder: %q", got)
	}
	// What is put away, of tools or of sub-agents, or was all taken back is not listed.
	for _, fields := range []string{
		`"hidden": 1, "messages": [{"role": "user", "content": "hi"}]`, `"archived": 1, "messages": [{"role": "user", "content": "hi"}]`,
		`"source": "tool", "messages": [{"role": "user", "content": "hi"}]`,
		`"model_config": "{\"_delegate_from\": \"x\"}", "messages": [{"role": "user", "content": "hi"}]`,
		`"messages": [{"role": "user", "content": "hi", "active": 0}]`,
	} {
		both = []byte(`{"id": "a", ` + fields + "}\n")
		if got := of(&pluginapi.SessionsQuery{AllProjects: true}); len(got) > 0 {
			t.Errorf("%s: %q", fields, got)
		}
	}
}

func TestReadSession(t *testing.T) {
	_, one := exported(t)
	adaptertest.Session(t, adapter{}, &pluginapi.SessionQuery{
		SessionId: sessionID, ExecResults: results(0, listed, &pluginapi.ExecResult{Stdout: one}),
	}, "testdata/session.golden")
	// The beginning of an id is not an id.
	q := &pluginapi.SessionQuery{SessionId: sessionID[:8], ExecResults: results(0, listed, &pluginapi.ExecResult{Stdout: one})}
	none := func(pluginapi.Payload, time.Time) bool { t.Error("an event of another session"); return false }
	if err := (adapter{}).ReadSession(t.Context(), q, none); !errors.Is(err, pluginapi.CodeSessionNotFound) {
		t.Errorf("a beginning: %v", err)
	}
	q.ExecResults[1] = &pluginapi.ExecResult{ExitCode: 1, Stdout: []byte("No session 'x'. Run: hermes sessions list to find the id.\n")}
	if err := (adapter{}).ReadSession(t.Context(), q, none); !errors.Is(err, pluginapi.CodeSessionNotFound) {
		t.Errorf("unknown: %v", err)
	}
	for _, id := range []string{"", "--help", "a b"} {
		if err := (adapter{}).ReadSession(t.Context(), &pluginapi.SessionQuery{SessionId: id}, nil); !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("session %q: got %v", id, err)
		}
	}
}

// What was taken back is told to a caller that asks for all; images are no text; what a model has
// said that is no JSON is no input.
func TestReadSessionBranches(t *testing.T) {
	made := `{"id": "s", "title": "named", "messages": [
		{"role": "user", "content": "taken back", "active": 0},
		{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:"}}], "active": 1},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": {"name": "terminal", "arguments": "no json"}}], "active": 1}
	]}`
	for all, want := range map[bool]string{
		false: "session_start session_title turn_start user_message look tool_call_start tool_call_ready tool_error turn_end session_end",
		true:  "session_start session_title turn_start user_message taken back turn_end turn_start user_message look tool_call_start tool_call_ready tool_error turn_end session_end",
	} {
		q := &pluginapi.SessionQuery{SessionId: "s", AllBranches: all, ExecResults: results(0, listed, &pluginapi.ExecResult{Stdout: []byte(made)})}
		var got []string
		if err := (adapter{}).ReadSession(t.Context(), q, func(p pluginapi.Payload, _ time.Time) bool {
			if t := string(p.EventType()); !strings.HasPrefix(t, "shell_") {
				got = append(got, t)
			}
			if p, ok := p.(pluginapi.UserMessage); ok {
				got = append(got, p.Text)
			}
			return true
		}); err != nil || strings.Join(got, " ") != want {
			t.Errorf("all %v: %v\n%s\n%s", all, err, strings.Join(got, " "), want)
		}
	}
}

// An export of 160 MB is listed and read in less than 64 MB, and so far as somebody
// wants it.
func TestSessionsHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 160 MB")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	fmt.Fprintf(out, `{"id": "s", "messages": [`)
	const messages = 160
	text := strings.Repeat("y", 1<<20)
	for i := range messages {
		fmt.Fprintf(out, `{"role": "user", "content": "%d"}, {"role": "assistant", "content": "%s"},`, i, text)
	}
	fmt.Fprintf(out, `{"role": "user", "content": "the end"}]}`)
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	done := results(0, listed, &pluginapi.ExecResult{StdoutFile: file.Name()})
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	look := func() {
		runtime.ReadMemStats(&now)
		peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
	}
	size, last := 0, ""
	err = adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{SessionId: "s", ExecResults: done}, func(p pluginapi.Payload, _ time.Time) bool {
		switch p := p.(type) {
		case pluginapi.UserMessage:
			last = p.Text
			look()
		case pluginapi.MessageStop:
			size += len(p.Text)
		}
		return true
	})
	if err != nil || last != "the end" || size != messages<<20 {
		t.Errorf("got %v, %d bytes, last %q", err, size, last)
	}
	turns := uint32(0)
	err = adapter{}.ListSessions(t.Context(), &pluginapi.SessionsQuery{AllProjects: true, ExecResults: done}, func(s *pluginapi.SessionSummary) bool {
		turns = s.Turns
		look()
		return true
	})
	if err != nil || turns != messages+1 {
		t.Errorf("listed: %v, %d turns", err, turns)
	}
	if peak > 64<<20 {
		t.Errorf("it took %d MB", peak>>20)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	if err := (adapter{}).ReadSession(ctx, &pluginapi.SessionQuery{SessionId: "s", ExecResults: done}, func(pluginapi.Payload, time.Time) bool {
		n++
		cancel()
		return true
	}); !errors.Is(err, context.Canceled) || n > 10 {
		t.Errorf("after a stop: %v, %d events", err, n)
	}
}
