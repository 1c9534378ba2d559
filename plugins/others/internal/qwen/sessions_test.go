package qwen

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
	return &pluginapi.Caller{Home: home, Cwd: "/home/dev/work-qwen", Os: "linux", Arch: "amd64"}
}

// A session that the real CLI has stored.
func TestReadSession(t *testing.T) {
	adaptertest.Session(t, Adapter{}, &pluginapi.SessionQuery{Caller: caller(t), SessionId: "8a6d072b-8b78-4fd7-b229-14365cd5600c"}, filepath.Join("testdata", "session.golden"))
}

func TestListSessions(t *testing.T) {
	list := func(q *pluginapi.SessionsQuery) (got []*pluginapi.SessionSummary) {
		if err := (Adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool { got = append(got, s); return true }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	here := list(&pluginapi.SessionsQuery{Caller: caller(t)})
	if len(here) != 1 || here[0].Title != "SCN:tool x" || here[0].Model != "fake-model" || here[0].CreatedUnixMs != 1795195402169 {
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
	moved.Env = map[string]string{"QWEN_HOME": filepath.Join(moved.Home, ".qwen")}
	moved.Home = "/nowhere"
	if got := list(&pluginapi.SessionsQuery{Caller: moved}); len(got) != 1 {
		t.Errorf("QWEN_HOME: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Adapter{}).ListSessions(ctx, &pluginapi.SessionsQuery{Caller: moved}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, id := range []string{"none", "../s", "", "*"} {
		err := Adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{Caller: caller(t), SessionId: id}, nil)
		if !errors.Is(err, pluginapi.CodeSessionNotFound) {
			t.Errorf("session %q: got %v", id, err)
		}
	}
}
