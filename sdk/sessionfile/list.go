package sessionfile

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// Dirs are the names of the directory whose sessions q asks for; none if it asks for
// all.
func Dirs(q *pluginapi.SessionsQuery) []string {
	if q.GetAllProjects() {
		return nil
	}
	cwd := q.GetCaller().GetCwd()
	if real, err := filepath.EvalSymlinks(cwd); err == nil && real != cwd {
		return []string{cwd, real}
	}
	return []string{cwd}
}

// List yields the summaries that q asks for, in the order of files. A file without a
// summary, or that cannot be read, is passed over: it must not hide the others.
func List[F any](ctx context.Context, q *pluginapi.SessionsQuery, files []F,
	summarize func(context.Context, F) (*pluginapi.SessionSummary, error), yield func(*pluginapi.SessionSummary) bool,
) error {
	dirs, sent := Dirs(q), uint32(0)
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := summarize(ctx, file)
		if err != nil || s == nil || len(dirs) > 0 && !slices.Contains(dirs, s.Cwd) {
			continue
		}
		if !yield(s) {
			return nil
		}
		if sent++; q.GetLimit() > 0 && sent >= q.GetLimit() {
			return nil
		}
	}
	return ctx.Err()
}

// Time is what a line says in "timestamp", in the form of RFC 3339.
func Time(line jsonl.Value) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, line.Text("timestamp"))
	return at, err == nil
}
