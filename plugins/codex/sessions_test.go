package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

const (
	recordedSession = "01a1ff21-c521-7d60-8cf7-1d569e5697c9"
	recordedFork    = "01a1ff21-cdf4-75e2-b63d-e10bc2f4dbee"
)

// recorded is a caller whose CODEX_HOME is in testdata.
func recorded(t *testing.T) *pluginapi.Caller {
	dir, err := filepath.Abs(filepath.Join("testdata", "home"))
	if err != nil {
		t.Fatal(err)
	}
	return &pluginapi.Caller{Home: "/nowhere", Cwd: "/home/dev/work", Os: "linux", Arch: "amd64", Env: map[string]string{"CODEX_HOME": dir}}
}

// readSession returns a session's events, one a line.
func readSession(t *testing.T, q *pluginapi.SessionQuery) string {
	t.Helper()
	var b bytes.Buffer
	err := adapter{}.ReadSession(t.Context(), q, func(p pluginapi.Payload, at time.Time) bool {
		data, err := pluginapi.AppendPayload(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %s\n", at.UTC().Format("15:04:05.000"), p.EventType(), data)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A session that the real CLI has stored (its notes to itself cut out), whose
// last turns were taken back, so that it goes on in a second file; and one that
// was forked from it before that.
func TestReadSessionGolden(t *testing.T) {
	for _, test := range []struct {
		name, id string
		all      bool
	}{
		{"active", recordedSession, false},
		{"all", recordedSession, true},
		{"fork", recordedFork, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := readSession(t, &pluginapi.SessionQuery{Caller: recorded(t), SessionId: test.id, AllBranches: test.all})
			file := filepath.Join("testdata", "session-"+test.name+".golden")
			if flag.Lookup("update").Value.String() == "true" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What was taken back is there only if all is asked for; a fork has it, because it
// was forked before.
func TestReadSessionBranches(t *testing.T) {
	active := readSession(t, &pluginapi.SessionQuery{Caller: recorded(t), SessionId: recordedSession})
	all := readSession(t, &pluginapi.SessionQuery{Caller: recorded(t), SessionId: recordedSession, AllBranches: true})
	fork := readSession(t, &pluginapi.SessionQuery{Caller: recorded(t), SessionId: recordedFork})
	for _, c := range []struct {
		text              string
		active, all, fork bool
	}{
		{"what is this", true, true, true},
		{"no_such_tool", false, true, true},
		{"[fm:hang]", false, true, true},
		{"[fm:text] instead", true, true, false},
		{"[fm:text] forked", false, false, true},
		{"file_create", true, true, true},
		{"mcp_tool_result", true, true, true},
		{"interrupted", false, true, true},
	} {
		for name, got := range map[string]bool{
			"active": strings.Contains(active, c.text) != c.active,
			"all":    strings.Contains(all, c.text) != c.all,
			"fork":   strings.Contains(fork, c.text) != c.fork,
		} {
			if got {
				t.Errorf("%s: %q is there, or not, wrongly", name, c.text)
			}
		}
	}
}

func TestListSessionsRecorded(t *testing.T) {
	var got []string
	list := func(q *pluginapi.SessionsQuery) {
		got = nil
		err := adapter{}.ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool {
			got = append(got, fmt.Sprintf("%s %q %s %s fork of %q", s.Id[9:13], s.Title, s.Cwd, s.Model, s.ForkedFrom))
			if s.Bytes == 0 || s.CreatedUnixMs == 0 || s.UpdatedUnixMs == 0 || s.Path == "" {
				t.Errorf("got %v", s)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list(&pluginapi.SessionsQuery{Caller: recorded(t)})
	for _, want := range []string{
		`c521 "My title" /home/dev/work gpt-5.5 fork of ""`,
		`cdf4 "[fm:text] forked" /home/dev/work gpt-5.5 fork of "` + recordedSession + `"`,
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if len(got) != 2 {
		t.Errorf("got %q", got)
	}
	other := recorded(t)
	other.Cwd = "/elsewhere"
	if list(&pluginapi.SessionsQuery{Caller: other}); len(got) != 0 {
		t.Errorf("another folder has %q", got)
	}
	if list(&pluginapi.SessionsQuery{Caller: other, AllProjects: true, Limit: 1}); len(got) != 1 {
		t.Errorf("with a limit of 1: %q", got)
	}
}

func TestReadSessionUnknown(t *testing.T) {
	for _, id := range []string{"", "../../x", "99999999-2222-4333-8444-555555555555"} {
		err := adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{Caller: recorded(t), SessionId: id}, nil)
		if !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("%q: got %v", id, err)
		}
	}
}

// writeRollout stores a session and returns its path.
func writeRollout(t *testing.T, home, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(home, ".codex", "sessions", "2026", "01", "02", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func rolloutLine(ordinal int, kind, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-01-02T03:04:05.006Z","ordinal":%d,"type":%q,"payload":%s}`, ordinal, kind, payload)
}

const someID = "01a1ff21-c521-7d60-8cf7-000000000001"

// Files that are broken, of sub-agents, or of an older CLI without items.
func TestOddSessions(t *testing.T) {
	home := t.TempDir()
	const olderID = "01a1ff21-c521-7d60-8cf7-000000000002"
	writeRollout(t, home, "rollout-2026-01-02T03-04-05-"+someID+".jsonl",
		rolloutLine(0, "session_meta", `{"id":"`+someID+`","cwd":"/w","source":{"subagent":{}}}`))
	writeRollout(t, home, "rollout-2026-01-02T03-04-06-"+olderID+".jsonl",
		rolloutLine(0, "session_meta", `{"id":"`+olderID+`","cwd":"/w","source":"exec","cli_version":"0.100.0","timestamp":"2026-01-02T03:04:05Z"}`),
		"garbage",
		rolloutLine(1, "response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}`),
		rolloutLine(2, "response_item", `{"type":"message","role":"user","id":"u","content":[{"type":"input_text","text":"hello\nthere"}]}`),
		rolloutLine(3, "response_item", `{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}]}`),
		rolloutLine(4, "response_item", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}`),
		rolloutLine(5, "response_item", `{"type":"function_call_output","call_id":"c","output":"a.txt"}`),
		rolloutLine(6, "response_item", `{"type":"function_call","name":"shell","arguments":"not JSON","call_id":"d"}`),
		rolloutLine(7, "response_item", `{"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"hi"}]}`))
	writeRollout(t, home, "rollout-2026-01-02T03-04-07-01a1ff21-c521-7d60-8cf7-000000000003.jsonl", "")
	caller := &pluginapi.Caller{Home: home, Cwd: "/w"}
	var titles []string
	err := adapter{}.ListSessions(t.Context(), &pluginapi.SessionsQuery{Caller: caller}, func(s *pluginapi.SessionSummary) bool {
		titles = append(titles, s.Title)
		return true
	})
	if err != nil || len(titles) != 1 || titles[0] != "hello" {
		t.Errorf("got %q, %v", titles, err)
	}
	got := readSession(t, &pluginapi.SessionQuery{Caller: caller, SessionId: olderID})
	var types []string
	for line := range strings.Lines(got) {
		types = append(types, strings.Fields(line)[1])
	}
	want := []string{"session_start", "turn_start", "user_message", "thinking_start", "thinking_delta", "thinking_stop",
		"tool_call_start", "tool_call_ready", "tool_result", "message_start", "text_delta", "message_stop",
		"tool_call_start", "tool_call_ready", "tool_error", "turn_end", "session_end"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
}

// A session of 100 MB needs no more memory than a small one.
func TestReadSessionMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100 MB")
	}
	home := t.TempDir()
	path := writeRollout(t, home, "rollout-2026-01-02T03-04-05-"+someID+".jsonl",
		rolloutLine(0, "session_meta", `{"id":"`+someID+`","cwd":"/w","source":"cli","history_mode":"paginated"}`))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("word ", 2000)
	const items = 10_000
	for i := range items {
		fmt.Fprintln(file, rolloutLine(i+1, "event_msg", fmt.Sprintf(`{"type":"item_completed","item":{"type":"AgentMessage","id":"m%d","content":[{"type":"Text","text":%q}]}}`, i, text)))
	}
	// Calls of which nothing more is told.
	for i := range 1000 {
		fmt.Fprintln(file, rolloutLine(items+i, "response_item", fmt.Sprintf(`{"type":"function_call","name":"x","arguments":"{}","call_id":"c%d"}`, i)))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, n := uint64(0), 0
	err = adapter{}.ReadSession(context.Background(), &pluginapi.SessionQuery{Caller: &pluginapi.Caller{Home: home}, SessionId: someID}, func(p pluginapi.Payload, _ time.Time) bool {
		if n++; n%5000 == 0 {
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc-min(after.HeapAlloc, before.HeapAlloc))
		}
		return true
	})
	if err != nil || n < 3*items {
		t.Fatalf("%d events, %v", n, err)
	}
	if peak > 64<<20 {
		t.Errorf("%d MB of memory", peak>>20)
	}
}
