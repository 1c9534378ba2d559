package main

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
)

// The CLI keeps a thread in <home>/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl.
// When turns of it are taken back it goes on in a further file, whose name has an
// id of its own after the thread's; the first line says where the file before is
// to be left.
const (
	sessionsDir = "${CODEX_HOME:-~/.codex}/sessions"
	titlesFile  = "${CODEX_HOME:-~/.codex}/session_index.jsonl"
)

var rolloutName = pattern.New(`^rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(_[0-9a-f-]{36})?\.jsonl$`)

// rollout is a file that has not been read.
type rollout struct {
	thread, path string
	name         string // sorts by time
	modified     time.Time
	size         int64
}

// rollouts finds the files, the newest first; thread limits them to one.
func rollouts(caller *pluginapi.Caller, thread string) []rollout {
	root, ok := authprobe.Expand(sessionsDir, caller)
	if !ok {
		return nil
	}
	var found []rollout
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // one folder that cannot be read must not hide the others
		}
		m := rolloutName.FindStringSubmatch(entry.Name())
		if m == nil || thread != "" && m[2] != thread {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		found = append(found, rollout{m[2], path, entry.Name(), info.ModTime(), info.Size()})
		return nil
	})
	slices.SortFunc(found, func(a, b rollout) int {
		return cmp.Or(b.modified.Compare(a.modified), strings.Compare(b.name, a.name))
	})
	return found
}

// ListSessions lists the stored sessions, newest first.
func (adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	titles := storedTitles(q.GetCaller())
	seen := map[string]bool{}
	files := slices.DeleteFunc(rollouts(q.GetCaller(), ""), func(file rollout) bool {
		older := seen[file.thread]
		seen[file.thread] = true
		return older
	})
	return sessionfile.List(ctx, q, files, func(ctx context.Context, file rollout) (*pluginapi.SessionSummary, error) {
		s, err := summarize(ctx, file)
		if err != nil || s == nil {
			return nil, err
		}
		if s.Title == "" {
			s.Title = firstPrompt(ctx, q.GetCaller(), s.Id)
		}
		if title := titles[s.Id]; title != "" {
			s.Title = shortTitle(title)
		}
		return s, nil
	}, yield)
}

// firstPrompt is the title of a thread whose newest file has no prompt: it was
// forked, or its turns were taken back.
func firstPrompt(ctx context.Context, caller *pluginapi.Caller, id string) string {
	for _, segment := range segments(caller, id) {
		if s, err := summarize(ctx, segment.file); err == nil && s != nil && s.Title != "" {
			return s.Title
		}
	}
	return ""
}

// storedTitles are the names that somebody has given.
func storedTitles(caller *pluginapi.Caller) map[string]string {
	titles := map[string]string{}
	path, ok := authprobe.Expand(titlesFile, caller)
	if !ok {
		return titles
	}
	lines, err := sessionfile.Open(path)
	if err != nil {
		return titles
	}
	defer lines.Close()
	for lines.Next() {
		if doc, err := jsonl.ParseObject(lines.Line); err == nil {
			titles[doc.Text("id")] = doc.Text("thread_name")
			doc.Release()
		}
	}
	return titles
}

// summaryLines is how far a list looks into a file for the first prompt. What
// comes before it are the CLI's own notes, a few lines.
const summaryLines = 400

// summarize reads what a list shows of a session; nil if it is no session, or
// one of a sub-agent.
func summarize(ctx context.Context, file rollout) (*pluginapi.SessionSummary, error) {
	lines, err := sessionfile.Open(file.path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	s := &pluginapi.SessionSummary{
		Id: file.thread, Path: file.path, Bytes: uint64(file.size), UpdatedUnixMs: file.modified.UnixMilli(),
	}
	meta := false
	for n := 0; n < summaryLines && lines.Next(); n++ {
		if n%100 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		p := doc.Get("payload")
		switch doc.Text("type") {
		case "session_meta":
			if p.IsObject("source") {
				doc.Release()
				return nil, nil
			}
			meta = true
			s.Cwd, s.ForkedFrom = p.Text("cwd"), p.Text("forked_from_id")
			if at, err := time.Parse(time.RFC3339, p.Text("timestamp")); err == nil {
				s.CreatedUnixMs = at.UnixMilli()
			}
		case "turn_context":
			if s.Model == "" {
				s.Model = p.Text("model")
			}
		case "event_msg":
			if p.Text("type") == "thread_settings_applied" && s.Model == "" {
				s.Model = p.Text("thread_settings", "model")
			}
			if s.Title == "" && p.Text("item", "type") == "UserMessage" {
				s.Title = shortTitle(inputText(p.Get("item", "content")))
			}
		case "response_item":
			if s.Title == "" && p.Text("role") == "user" {
				s.Title = shortTitle(typedText(p.Get("content")))
			}
		}
		doc.Release()
		if s.Title != "" && s.Model != "" {
			break
		}
	}
	if !meta {
		return nil, lines.Err()
	}
	return s, lines.Err()
}

// typedText is what somebody typed; the CLI's own notes are one element each.
func typedText(content jsonl.Value) string {
	text := inputText(content)
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "<") && strings.HasSuffix(trimmed, ">") || strings.HasPrefix(trimmed, "# AGENTS.md") {
		return ""
	}
	return text
}

// shortTitle is the first line of a title, at most 120 characters of it.
func shortTitle(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.ToValidUTF8(text, "\ufffd")
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:119]) + "…"
	}
	return text
}

// segment is a file of a session, up to an ordinal.
type segment struct {
	file  rollout
	until int64 // ordinals below it; 0: all
}

// maxSegments bounds how far forks and files that go on are followed.
const maxSegments = 1000

// segments are the files of a thread as it stands now, the oldest first: those it
// was forked from, and those whose turns were not taken back.
func segments(caller *pluginapi.Caller, thread string) []segment {
	files := rollouts(caller, thread)
	if len(files) == 0 {
		return nil
	}
	slices.SortFunc(files, func(a, b rollout) int { return strings.Compare(b.name, a.name) })
	chain := []segment{{file: files[0]}}
	for len(chain) < maxSegments {
		current := chain[len(chain)-1]
		base, until := baseOf(current.file.path)
		if base == "" {
			break
		}
		older := files
		if base != current.file.thread {
			older = rollouts(caller, base)
			slices.SortFunc(older, func(a, b rollout) int { return strings.Compare(b.name, a.name) })
		}
		i := slices.IndexFunc(older, func(f rollout) bool {
			return f.path != current.file.path && stamp(f.name) <= stamp(current.file.name) &&
				(f.thread != current.file.thread || f.name < current.file.name) && firstOrdinal(f.path) < until
		})
		if i < 0 {
			break // what it goes on from is gone
		}
		files = older
		chain = append(chain, segment{older[i], until})
	}
	slices.Reverse(chain)
	return chain
}

func stamp(name string) string { return name[:min(len(name), len("rollout-2006-01-02T15-04-05"))] }

// head reads the first line of a file and hands it on.
func head(path string, use func(jsonl.Value)) {
	lines, err := sessionfile.Open(path)
	if err != nil {
		return
	}
	defer lines.Close()
	if !lines.Next() {
		return
	}
	if doc, err := jsonl.ParseObject(lines.Line); err == nil {
		use(doc.Value)
		doc.Release()
	}
}

// baseOf is the thread that a file goes on from, and the ordinal up to which.
func baseOf(path string) (thread string, until int64) {
	head(path, func(line jsonl.Value) {
		p := line.Get("payload")
		if thread = p.Text("history_base", "thread_id"); thread != "" {
			until, _ = p.Int("history_base", "end_ordinal_exclusive")
			return
		}
		thread = p.Text("forked_from_id")
		until, _ = p.Int("forked_from_ordinal_exclusive")
	})
	if until <= 0 {
		return "", 0 // an older CLI copies what it forks
	}
	return thread, until
}

func firstOrdinal(path string) (ordinal int64) {
	head(path, func(line jsonl.Value) { ordinal, _ = line.Int("ordinal") })
	return ordinal
}

// isNote reports whether a line gives no event, by its first bytes: the CLI's
// notes about itself are most of a file.
func isNote(line []byte) bool {
	start := line[:min(len(line), 160)]
	return bytes.Contains(start, []byte(`"type":"world_state"`)) || bytes.Contains(start, []byte(`"type":"token_usage_record"`))
}
