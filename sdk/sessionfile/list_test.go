package sessionfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/sessionfile"
)

func TestList(t *testing.T) {
	real := filepath.Join(t.TempDir(), "real")
	link := real + "-link"
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	files := []string{"a " + link, "broken", "b " + real, "silent", "c /else", "d " + real}
	summarize := func(_ context.Context, file string) (*pluginapi.SessionSummary, error) {
		id, cwd, ok := strings.Cut(file, " ")
		switch {
		case ok:
			return &pluginapi.SessionSummary{Id: id, Cwd: cwd}, nil
		case file == "silent":
			return nil, nil
		}
		return nil, errors.New("not read")
	}
	list := func(ctx context.Context, q *pluginapi.SessionsQuery, stopAt string) (string, error) {
		q.Caller = &pluginapi.Caller{Cwd: link}
		ids := ""
		err := sessionfile.List(ctx, q, files, summarize, func(s *pluginapi.SessionSummary) bool {
			ids += s.Id
			return s.Id != stopAt
		})
		return ids, err
	}
	for _, tt := range []struct {
		q      *pluginapi.SessionsQuery
		stopAt string
		want   string
	}{
		{q: &pluginapi.SessionsQuery{}, want: "abd"},
		{q: &pluginapi.SessionsQuery{AllProjects: true}, want: "abcd"},
		{q: &pluginapi.SessionsQuery{Limit: 2}, want: "ab"},
		{q: &pluginapi.SessionsQuery{}, stopAt: "b", want: "ab"},
	} {
		if got, err := list(t.Context(), tt.q, tt.stopAt); got != tt.want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := list(ctx, &pluginapi.SessionsQuery{}, ""); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: got %q, %v", got, err)
	}
}
