package copilot

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
	return &pluginapi.Caller{Home: home, Cwd: "/home/dev/work-copilot", Os: "linux", Arch: "amd64"}
}

// Sessions that the real CLI has stored: one with four turns, and one with a
// command.
func TestReadSession(t *testing.T) {
	for id, golden := range map[string]string{
		"11111111-2222-4333-8444-555555555555": "session.golden",
		"0cb916db-26aa-40f2-86b5-1ba81b225fd2": "session-tool.golden",
	} {
		adaptertest.Session(t, Adapter{}, &pluginapi.SessionQuery{Caller: caller(t), SessionId: id}, filepath.Join("testdata", golden))
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
	if len(here) != 1 || here[0].Title != "SCN:text first" || here[0].Model != "fake-model" || here[0].CreatedUnixMs != 1795195454123 {
		t.Errorf("got %v", here)
	}
	moved := caller(t)
	moved.Env = map[string]string{"COPILOT_HOME": filepath.Join(moved.Home, ".copilot")}
	moved.Home = "/nowhere"
	if got := list(&pluginapi.SessionsQuery{Caller: moved, AllProjects: true}); len(got) != 2 {
		t.Errorf("COPILOT_HOME: %v", got)
	}
	if got := list(&pluginapi.SessionsQuery{Caller: moved, AllProjects: true, Limit: 1}); len(got) != 1 {
		t.Errorf("limit: %v", got)
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

// A login in the keychain cannot be seen: where one may be, nothing is said.
func TestDetectAuth(t *testing.T) {
	for name, c := range map[string]struct {
		caller *pluginapi.Caller
		want   string
	}{
		"never started": {&pluginapi.Caller{Home: t.TempDir()}, "github unauthenticated"},
		"started":       {&pluginapi.Caller{Home: filepath.Join("testdata", "started")}, "github unknown"},
		"a token":       {&pluginapi.Caller{Home: "/nowhere", Env: map[string]string{"GH_TOKEN": "fake"}}, "github authenticated"},
		"a provider":    {&pluginapi.Caller{Home: "/nowhere", Env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "http://h"}}, "own authenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := Adapter{}.DetectAuth(t.Context(), &pluginapi.AuthRequest{Caller: c.caller})
			if err != nil || len(resp.States) != 1 || resp.States[0].Provider+" "+resp.States[0].Status != c.want {
				t.Errorf("got %v, %v; want %s", resp.GetStates(), err, c.want)
			}
		})
	}
}
