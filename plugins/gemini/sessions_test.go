package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func caller(t *testing.T) *pluginapi.Caller {
	home, err := filepath.Abs(filepath.Join("testdata", "home"))
	if err != nil {
		t.Fatal(err)
	}
	return &pluginapi.Caller{Home: home, Cwd: "/home/dev/work-gemini", Os: "linux", Arch: "amd64"}
}

// A session that the real CLI has stored.
func TestReadSession(t *testing.T) {
	adaptertest.Session(t, adapter{}, &pluginapi.SessionQuery{Caller: caller(t), SessionId: "0cbe39f5-6a69-49da-b8e8-4c2ff6c04c57"}, filepath.Join("testdata", "session.golden"))
}

func TestListSessions(t *testing.T) {
	list := func(q *pluginapi.SessionsQuery) (got []*pluginapi.SessionSummary) {
		if err := (adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool { got = append(got, s); return true }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	here := list(&pluginapi.SessionsQuery{Caller: caller(t)})
	if len(here) != 1 || here[0].Title != "[fm:think] hello" || here[0].Model != "gemini-2.5-flash" || here[0].CreatedUnixMs != 1795281723476 {
		t.Errorf("got %v", here)
	}
	elsewhere := caller(t)
	elsewhere.Cwd = "/elsewhere"
	if got := list(&pluginapi.SessionsQuery{Caller: elsewhere}); len(got) != 0 {
		t.Errorf("elsewhere: %v", got)
	}
	if got := list(&pluginapi.SessionsQuery{Caller: elsewhere, AllProjects: true}); len(got) != 1 {
		t.Errorf("all: %v", got)
	}
	moved := caller(t)
	moved.Env = map[string]string{"GEMINI_CLI_HOME": moved.Home}
	moved.Home = "/nowhere"
	if got := list(&pluginapi.SessionsQuery{Caller: moved}); len(got) != 1 {
		t.Errorf("GEMINI_CLI_HOME: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (adapter{}).ListSessions(ctx, &pluginapi.SessionsQuery{Caller: moved}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, id := range []string{"none", "../s", "", "*"} {
		err := adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{Caller: caller(t), SessionId: id}, nil)
		if !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("session %q: got %v", id, err)
		}
	}
}
