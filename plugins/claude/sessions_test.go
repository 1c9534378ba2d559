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

// recorded is a caller whose settings are those in testdata.
func recorded(t *testing.T) *pluginapi.Caller {
	dir, err := filepath.Abs(filepath.Join("testdata", "config"))
	if err != nil {
		t.Fatal(err)
	}
	return &pluginapi.Caller{
		Home: "/nowhere", Cwd: "/home/dev/work/w", Os: "linux", Arch: "amd64",
		Env: map[string]string{"CLAUDE_CONFIG_DIR": dir},
	}
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

// Sessions that the real CLI has stored (with what it noted about its own
// requests cut out): two tools at once, whose lines are no straight path; a
// compaction; a sub-agent in a file of its own.
func TestReadSessionGolden(t *testing.T) {
	for _, test := range []struct {
		name, id string
		all      bool
	}{
		{"parallel", "11111111-2222-4333-8444-555555555555", false},
		{"subagent", "0353b7f3-b5af-4f9f-ac15-940ffb1d9116", false},
		{"subagent-all", "0353b7f3-b5af-4f9f-ac15-940ffb1d9116", true},
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

func TestListSessionsRecorded(t *testing.T) {
	var ids []string
	err := adapter{}.ListSessions(t.Context(), &pluginapi.SessionsQuery{Caller: recorded(t)}, func(s *pluginapi.SessionSummary) bool {
		ids = append(ids, s.Id)
		if s.Id != "11111111-2222-4333-8444-555555555555" {
			return true
		}
		if s.Title != "mytitle" || s.Cwd != "/home/dev/work/w" || s.Model != "claude-opus-5-5" || s.CreatedUnixMs == 0 || s.Bytes == 0 {
			t.Errorf("got %v", s)
		}
		return true
	})
	if err != nil || len(ids) != 2 {
		t.Errorf("got %q, %v", ids, err)
	}
}

// writeSession stores a session in home and returns its path.
func writeSession(t *testing.T, home, project, id string, age time.Duration, lines ...string) string {
	t.Helper()
	path := filepath.Join(home, ".claude", "projects", project, id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

func said(uuid, parent, text string) string {
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"type":"user","message":{"role":"user","content":%q},"uuid":%q,"timestamp":"2026-01-02T03:04:05.006Z","cwd":"/w/a.b","version":"2.1.329"}`, orNull(parent), text, uuid)
}

func answered(uuid, parent, id, text string) string {
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"message":{"id":%q,"model":"m","content":[{"type":"text","text":%q}],"usage":{"input_tokens":1,"output_tokens":2}},"type":"assistant","uuid":%q,"timestamp":"2026-01-02T03:04:06Z","cwd":"/w/a.b"}`, orNull(parent), id, text, uuid)
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return fmt.Sprintf("%q", s)
}

func TestListSessions(t *testing.T) {
	home := t.TempDir()
	caller := &pluginapi.Caller{Home: home, Cwd: "/w/a.b", Os: "linux"}
	writeSession(t, home, "-w-a-b", "newest", time.Minute, said("u1", "", "first words\nmore"), answered("a1", "u1", "m1", "x"))
	writeSession(t, home, "-w-a-b", "prompted", 2*time.Minute, said("u1", "", "first"), `{"type":"last-prompt","lastPrompt":"last words"}`)
	writeSession(t, home, "-w-a-b", "ai", 3*time.Minute, said("u1", "", "first"), `{"type":"last-prompt","lastPrompt":"last"}`, `{"type":"ai-title","aiTitle":"by the model"}`)
	writeSession(t, home, "-w-a-b", "named", 4*time.Minute, `{"type":"custom-title","customTitle":"old name"}`, said("u1", "", "first"), `{"type":"ai-title","aiTitle":"x"}`, `{"type":"custom-title","customTitle":"named by hand"}`)
	// The same slug, another directory.
	writeSession(t, home, "-w-a-b", "other", 5*time.Minute, strings.ReplaceAll(said("u1", "", "first"), "/w/a.b", "/w/a/b"))
	writeSession(t, home, "-w-c", "elsewhere", 6*time.Minute, strings.ReplaceAll(said("u1", "", "<command-name>/init</command-name><command-args> now </command-args>"), "/w/a.b", "/w/c"))
	writeSession(t, home, "-w-a-b", "silent", 0, `{"type":"mode","mode":"normal"}`)
	writeSession(t, home, "-w-a-b", "agent-123", 0, said("u1", "", "a sub-agent of old"))
	writeSession(t, home, "-w-a-b", "broken", 0, "{", "\xff")

	list := func(q *pluginapi.SessionsQuery) []string {
		var got []string
		if err := (adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool {
			got = append(got, s.Id+": "+s.Title)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	here := []string{"newest: first words", "prompted: last words", "ai: by the model", "named: named by hand"}
	for _, test := range []struct {
		name  string
		query *pluginapi.SessionsQuery
		want  []string
	}{
		{"project", &pluginapi.SessionsQuery{Caller: caller}, here},
		{"limit", &pluginapi.SessionsQuery{Caller: caller, Limit: 2}, here[:2]},
		{"all", &pluginapi.SessionsQuery{Caller: caller, AllProjects: true}, append(here[:4:4], "other: first", "elsewhere: /init now")},
		{"config dir", &pluginapi.SessionsQuery{Caller: &pluginapi.Caller{
			Home: "/nowhere", Cwd: "/w/a.b", Env: map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(home, ".claude")},
		}}, here},
		{"nothing", &pluginapi.SessionsQuery{Caller: &pluginapi.Caller{Home: "/nowhere", Cwd: "/w"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, list(test.query)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("stop", func(t *testing.T) {
		n := 0
		(adapter{}).ListSessions(t.Context(), &pluginapi.SessionsQuery{Caller: caller}, func(*pluginapi.SessionSummary) bool { n++; return false })
		if n != 1 {
			t.Errorf("yield was called %d times", n)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := (adapter{}).ListSessions(ctx, &pluginapi.SessionsQuery{Caller: caller}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReadSessionBranches(t *testing.T) {
	home := t.TempDir()
	caller := &pluginapi.Caller{Home: home, Cwd: "/w/a.b"}
	side := strings.Replace(answered("s1", "u1", "ms", "from the side"), `"isSidechain":false`, `"isSidechain":true`, 1)
	writeSession(t, home, "-w-a-b", "s", 0,
		said("u1", "", "root"), answered("a1", "u1", "m1", "first answer"),
		said("u2", "a1", "abandoned"), answered("a2", "u2", "m2", "abandoned answer"),
		side,
		said("u3", "a1", "instead"), answered("a3", "u3", "m3", "last answer"),
		`{"type":"cost-state","totalCostUSD":0.5}`, `{"type":"cost-state","totalCostUSD":0.75}`,
		`{"parentUuid":"unknown","isSidechain":false,"type":"user","isMeta":true,"message":{"content":"meta"},"uuid":"u9"}`,
		`{"parentUuid":"u9","isSidechain":false,"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]},"uuid":"u10"}`,
	)
	texts := func(all bool) string {
		var got []string
		for line := range strings.Lines(readSession(t, &pluginapi.SessionQuery{Caller: caller, SessionId: "s", AllBranches: all})) {
			fields := strings.SplitN(line, " ", 3)
			switch fields[1] {
			case "user_message", "message_stop", "cost", "interrupted", "session_end":
				got = append(got, fields[1]+" "+strings.TrimSpace(fields[2]))
			}
		}
		return strings.Join(got, "\n")
	}
	want := `user_message {"id":"u1","text":"root"}
message_stop {"message_id":"m1","text":"first answer"}
user_message {"id":"u3","text":"instead"}
message_stop {"message_id":"m3","text":"last answer"}
cost {"cost":{"usd":0.5}}
cost {"cost":{"usd":0.25}}
interrupted {}
session_end {"session_id":"s","turn_count":2}`
	if diff := cmp.Diff(want, texts(false)); diff != "" {
		t.Error(diff)
	}
	if all := texts(true); !strings.Contains(all, "abandoned answer") || !strings.Contains(all, "from the side") {
		t.Errorf("all branches: %s", all)
	}
	for _, id := range []string{"none", "../s", "", "a/b", `..\s`} {
		err := adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{Caller: caller, SessionId: id}, nil)
		if !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("session %q: got %v", id, err)
		}
	}
	n := 0
	(adapter{}).ReadSession(t.Context(), &pluginapi.SessionQuery{Caller: caller, SessionId: "s"}, func(pluginapi.Payload, time.Time) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("yield was called %d times after it had said stop at 3", n)
	}
}

// A session of 160 MB with a line of 9 MB is read in less than 64 MB.
func TestReadSessionHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 160 MB")
	}
	home := t.TempDir()
	path := writeSession(t, home, "-w-a-b", "huge", 0, said("u0", "", "begin"))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	pad := strings.Repeat("x", 1<<20)
	parent := "u0"
	for i := range 150 {
		id := fmt.Sprint("a", i)
		fmt.Fprintln(file, answered(id, parent, id, pad))
		parent = id
	}
	fmt.Fprintln(file, answered("long", parent, "long", strings.Repeat(pad, 9)))
	fmt.Fprintln(file, answered("end", "long", "end", "the end"))
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, events, last, logs := uint64(0), 0, "", 0
	err = adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{
		Caller: &pluginapi.Caller{Home: home, Cwd: "/w/a.b"}, SessionId: "huge",
	}, func(p pluginapi.Payload, _ time.Time) bool {
		if events++; events%32 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
		switch p := p.(type) {
		case pluginapi.MessageStop:
			last = p.Text
		case pluginapi.Log:
			logs++
			if *p.Length < 9<<20 || *p.Offset < 150<<20 {
				t.Errorf("log %v %v", *p.Offset, *p.Length)
			}
		}
		return true
	})
	if err != nil || logs != 1 || len(last) > 100 || last != "the end" || events < 600 {
		t.Errorf("got %v, %d events, %d logs, last %.20q", err, events, logs, last)
	}
	t.Logf("peak %d MB", peak>>20)
	if peak > 64<<20 {
		t.Errorf("it took %d MB", peak>>20)
	}
}
