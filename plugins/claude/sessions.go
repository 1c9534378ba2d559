package main

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/plugins/internal/streamjson"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
)

// The CLI keeps a session in <config>/projects/<slug>/<session id>.jsonl. The
// slug is the working directory with every character outside A-Z, a-z and 0-9
// made a hyphen, so that it does not say which directory that was.
const projectsDir = "${CLAUDE_CONFIG_DIR:-~/.claude}/projects"

const maxSlug = 200 // longer ones are cut by the CLI and get a suffix

var notInSlug = pattern.New(`[^A-Za-z0-9]`)

func slugOf(dir string) string { return notInSlug.ReplaceAllString(dir, "-") }

// sessionFiles finds the stored sessions of a name, which may be a pattern, newest
// first; dirs limit them to some projects.
func sessionFiles(caller *pluginapi.Caller, dirs []string, name string) []sessionfile.File {
	root, ok := authprobe.Expand(projectsDir, caller)
	if !ok {
		return nil
	}
	var projects []string
	for _, dir := range dirs {
		slug := slugOf(dir)
		if len(slug) > maxSlug {
			slug = slug[:maxSlug] + "*"
		}
		projects = append(projects, slug)
	}
	if len(dirs) == 0 {
		projects = []string{"*"}
	}
	slices.Sort(projects)
	var files []sessionfile.File
	for _, project := range slices.Compact(projects) {
		files = append(files, sessionfile.Find(root, project+"/"+name+".jsonl")...)
	}
	slices.SortStableFunc(files, func(a, b sessionfile.File) int { return b.Modified.Compare(a.Modified) })
	return slices.DeleteFunc(files, func(f sessionfile.File) bool { return strings.HasPrefix(f.Name(), "agent-") })
}

// ListSessions lists the stored sessions, newest first.
func (adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	dirs := sessionfile.Dirs(q)
	return sessionfile.List(ctx, q, sessionFiles(q.GetCaller(), dirs, "*"), func(ctx context.Context, file sessionfile.File) (*pluginapi.SessionSummary, error) {
		s, err := summarize(ctx, file)
		if s != nil && s.Cwd == "" && len(dirs) > 0 {
			s.Cwd = dirs[0] // its folder says so, and no line another
		}
		return s, err
	}, yield)
}

// summarize reads what a list shows of a session; nil if nobody has said
// anything in it. Most lines are passed over by a look at their first bytes.
func summarize(ctx context.Context, file sessionfile.File) (*pluginapi.SessionSummary, error) {
	lines, err := sessionfile.Open(file.Path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	s := &pluginapi.SessionSummary{
		Id: file.Name(), Path: file.Path, Bytes: uint64(file.Size), UpdatedUnixMs: file.Modified.UnixMilli(),
	}
	var custom, ai, last, first string
	spoken := false
	for n := 0; lines.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line := lines.Line
		if lines.Long {
			continue
		}
		head := line[:min(len(line), 200)]
		title := bytes.Contains(head, []byte(`-title"`)) || bytes.Contains(head, []byte(`"last-prompt"`))
		if !title && first != "" && s.Model != "" && s.Cwd != "" {
			continue
		}
		doc, err := jsonl.ParseObject(line)
		if err != nil {
			continue
		}
		switch doc.Text("type") {
		case "custom-title":
			custom = doc.Text("customTitle")
		case "ai-title":
			ai = firstText(doc.Value, "aiTitle", "title")
		case "last-prompt":
			last = doc.Text("lastPrompt")
		case "user":
			spoken = true
			if first == "" && !doc.Bool("isMeta") && !doc.Bool("isSidechain") {
				first = promptText(doc.Get("message", "content"))
			}
		case "assistant":
			spoken = true
			if model := doc.Text("message", "model"); s.Model == "" && model != "<synthetic>" {
				s.Model = model
			}
		}
		if s.Cwd == "" {
			s.Cwd = doc.Text("cwd")
		}
		if s.ForkedFrom == "" {
			s.ForkedFrom = doc.Text("forkedFrom", "sessionId")
		}
		if s.CreatedUnixMs == 0 {
			if at, ok := sessionfile.Time(doc.Value); ok {
				s.CreatedUnixMs = at.UnixMilli()
			}
		}
		doc.Release()
	}
	if !spoken {
		return nil, lines.Err()
	}
	s.Title = shortTitle(cmp.Or(custom, ai, last, first))
	return s, lines.Err()
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

var commandName = pattern.New(`(?s)<command-name>(.*?)</command-name>`)
var commandArgs = pattern.New(`(?s)<command-args>(.*?)</command-args>`)

// promptText is what somebody typed, "" if the CLI put the text there: output
// of slash commands, news of background work, results of tools.
func promptText(content jsonl.Value) string {
	text := streamjson.Text(content)
	switch {
	case strings.HasPrefix(text, "<local-command-"), strings.HasPrefix(text, "<task-notification>"),
		strings.HasPrefix(text, "<system-reminder>"), strings.HasPrefix(text, interruptedText):
		return ""
	case strings.HasPrefix(text, "<command-"):
		name := commandName.FindStringSubmatch(text)
		if name == nil {
			return ""
		}
		command := strings.TrimSpace(name[1])
		if args := commandArgs.FindStringSubmatch(text); args != nil {
			command = strings.TrimSpace(command + " " + strings.TrimSpace(args[1]))
		}
		return command
	}
	return text
}
