package omp

import (
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
	return &pluginapi.Caller{Home: home, Cwd: "/home/dev/omp-scratch", Os: "linux", Arch: "amd64"}
}

// Sessions that the real CLI has stored: text only, and one with tools.
func TestReadSession(t *testing.T) {
	for id, golden := range map[string]string{
		"01a1fa08-3d69-761c-ae51-2fd72474c01d": "session.golden",
		"01a1ffe7-a1fd-7000-b76c-339bb5260b64": "session-tool.golden",
	} {
		adaptertest.Session(t, Adapter{}, &pluginapi.SessionQuery{Caller: caller(t), SessionId: id}, filepath.Join("testdata", golden))
	}
	err := Adapter{}.ReadSession(t.Context(), &pluginapi.SessionQuery{Caller: caller(t), SessionId: "*"}, nil)
	if !errors.Is(err, pluginapi.CodeSessionNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestListSessions(t *testing.T) {
	list := func(q *pluginapi.SessionsQuery) (got []*pluginapi.SessionSummary) {
		if err := (Adapter{}).ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool { got = append(got, s); return true }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	here := list(&pluginapi.SessionsQuery{Caller: caller(t)})
	if len(here) != 1 || here[0].Title != "[text] say hello" || here[0].Model != "fake-1" || here[0].CreatedUnixMs != 1795196206441 {
		t.Errorf("got %v", here)
	}
	moved := caller(t)
	moved.Env = map[string]string{"PI_CODING_AGENT_DIR": filepath.Join(moved.Home, ".omp", "agent")}
	moved.Home = "/nowhere"
	if got := list(&pluginapi.SessionsQuery{Caller: moved, AllProjects: true}); len(got) != 2 {
		t.Errorf("PI_CODING_AGENT_DIR: %v", got)
	}
	if got := list(&pluginapi.SessionsQuery{Caller: &pluginapi.Caller{}, AllProjects: true}); len(got) != 0 {
		t.Errorf("no home: %v", got)
	}
}
