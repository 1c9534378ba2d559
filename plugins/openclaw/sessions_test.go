package main

import (
	"errors"
	"os"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// What the real CLI has printed.
func TestListSessions(t *testing.T) {
	printed, err := os.ReadFile("testdata/sessions.json")
	if err != nil {
		t.Fatal(err)
	}
	list := func(q *pluginapi.SessionsQuery) (got []*pluginapi.SessionSummary, err error) {
		err = adapter{}.ListSessions(t.Context(), q, func(s *pluginapi.SessionSummary) bool { got = append(got, s); return true })
		return got, err
	}
	query := func(stdout []byte, code int32) *pluginapi.SessionsQuery {
		return &pluginapi.SessionsQuery{Caller: &pluginapi.Caller{Cwd: "/w"}, ExecResults: []*pluginapi.ExecResult{{Stdout: stdout, ExitCode: code}}}
	}
	_, err = list(&pluginapi.SessionsQuery{})
	if needed, ok := errors.AsType[*sdk.ExecNeeded](err); !ok || needed.Argv[0] != "openclaw" {
		t.Errorf("without an answer: %v", err)
	}
	got, err := list(query(printed, 0))
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	if s := got[0]; s.Id != "my-sess-1" || s.Title != "agent:main:explicit:my-sess-1" || s.Model != "fake/fake-1" || s.CreatedUnixMs != 1795197078496 || s.UpdatedUnixMs != 1795197095091 {
		t.Errorf("got %v", s)
	}
	limited := query(printed, 0)
	limited.Limit = 1
	if got, err := list(limited); err != nil || len(got) != 1 {
		t.Errorf("limited: %v, %v", got, err)
	}
	if _, err := list(query(nil, 1)); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("a failure: %v", err)
	}
	if _, err := list(query([]byte("no JSON"), 0)); !errors.Is(err, pluginapi.CodeParse) {
		t.Errorf("no JSON: %v", err)
	}
}
