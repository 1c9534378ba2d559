package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/pattern"
	"github.com/amux-dev/amux/sdk/sessionfile"
	"github.com/amux-dev/amux/sdk/turn"
)

// The CLI keeps a session in tmp/PROJECT/chats/session-TIME-<8 of its id>.jsonl,
// and the directory of a project in tmp/PROJECT/.project_root. A file is a log of
// changes: a line whose id was there before replaces that line, {"$set":…} changes
// the head.
const tmpDir = "${GEMINI_CLI_HOME:-~}/.gemini/tmp"

var sessionIDRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{7,127}$`)

// ListSessions lists the stored sessions, newest first.
func (adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	root, ok := authprobe.Expand(tmpDir, q.GetCaller())
	if !ok {
		return nil
	}
	dirs, files := sessionfile.Dirs(q), sessionfile.Find(root, "*/chats/session-*.jsonl")
	if len(dirs) > 0 { // a project's files need not be read to be passed over
		files = slices.DeleteFunc(files, func(file sessionfile.File) bool { return !slices.Contains(dirs, projectRoot(file.Path)) })
	}
	return sessionfile.List(ctx, q, files, summarize, yield)
}

// projectRoot is the directory of the project that a session file belongs to.
func projectRoot(path string) string {
	data, err := sessionfile.Read(filepath.Join(filepath.Dir(filepath.Dir(path)), ".project_root"), 4096)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// summarize reads what a list shows of a session; nil if nobody has said anything
// in it.
func summarize(_ context.Context, file sessionfile.File) (*pluginapi.SessionSummary, error) {
	lines, err := sessionfile.Open(file.Path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	s := &pluginapi.SessionSummary{Path: file.Path, Cwd: projectRoot(file.Path), UpdatedUnixMs: file.Modified.UnixMilli(), Bytes: uint64(file.Size)}
	summary := ""
	for lines.Next() {
		// Most lines are passed over by a look at them.
		head := lines.Line[:min(len(lines.Line), 400)]
		if s.Id != "" && s.Title != "" && s.Model != "" && !bytes.Contains(head, []byte(`"summary"`)) {
			continue
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		if s.Id == "" {
			s.Id = doc.Text("sessionId")
			if at, err := time.Parse(time.RFC3339Nano, doc.Text("startTime")); err == nil {
				s.CreatedUnixMs = at.UnixMilli()
			}
		}
		if text := doc.Text("$set", "summary"); text != "" {
			summary = text
		}
		if doc.Text("type") == "user" && s.Title == "" {
			s.Title, _, _ = strings.Cut(userText(doc.Value), "\n")
		}
		if s.Model == "" {
			s.Model = doc.Text("model")
		}
		doc.Release()
	}
	if s.Id == "" || s.Title == "" {
		return nil, nil
	}
	if summary != "" {
		s.Title = summary
	}
	return s, nil
}

// userText is what the user has said in a line; the CLI itself says things in the
// user's place too.
func userText(line jsonl.Value) string {
	var texts []string
	for _, part := range line.Items("content") {
		if text := part.Text("text"); text != "" && !strings.HasPrefix(text, "<session_context>") {
			texts = append(texts, text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// ReadSession gives a stored session as events; the CLI's sessions have one branch.
func (adapter) ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	id := q.GetSessionId()
	notFound := pluginapi.Errorf(pluginapi.CodeSessionNotFound, "gemini has no session %q", id)
	root, ok := authprobe.Expand(tmpDir, q.GetCaller())
	if !ok || !sessionIDRule.MatchString(id) {
		return notFound
	}
	for _, file := range sessionfile.Find(root, "*/chats/session-*-"+id[:8]+".jsonl") {
		if s, err := summarize(ctx, file); err == nil && s != nil && s.Id == id {
			r := &sessionReader{id: id, Stored: turn.Stored{Yield: yield}}
			return r.read(ctx, file.Path)
		}
	}
	return notFound
}

// sessionReader makes events of one session.
type sessionReader struct {
	turn.Stored
	id string
}

func (r *sessionReader) read(ctx context.Context, path string) error {
	last, err := lastLines(ctx, path)
	if err != nil {
		return err
	}
	lines, err := sessionfile.Open(path)
	if err != nil {
		return err
	}
	defer lines.Close()
	begun := false
	for n := int32(0); !r.Stopped && lines.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if lines.Long {
			r.Long(lines.Offset, lines.Length)
			continue
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, doc.Text("timestamp")+doc.Text("startTime")); err == nil && at.After(r.At) {
			r.At = at
		}
		if !begun {
			begun = true
			r.Event(pluginapi.SessionStart{SessionID: r.id})
		}
		place, _ := last.Get(doc.Bytes("id"))
		r.line(doc.Value, place == n)
		doc.Release()
	}
	if begun {
		r.End(r.id)
	}
	return lines.Err()
}

// lastLines finds for each id the last line that has it.
func lastLines(ctx context.Context, path string) (*sessionfile.Index, error) {
	lines, err := sessionfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	last := &sessionfile.Index{}
	for n := int32(0); lines.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if doc, err := jsonl.ParseObject(lines.Line); err == nil {
			last.Put(doc.Bytes("id"), n)
			doc.Release()
		}
	}
	return last, lines.Err()
}

// line emits the events of a line; final says that no later one replaces it. Tools
// are told where they first appear, each once.
func (r *sessionReader) line(line jsonl.Value, final bool) {
	switch line.Text("type") {
	case "user":
		if text := userText(line); text != "" && final {
			r.Prompt(line.Text("id"), text)
		}
	case "gemini":
		if final {
			r.said(line)
		}
		for _, call := range line.Items("toolCalls") {
			r.tool(call)
		}
		if tokens := line.Get("tokens"); tokens.IsObject() && final {
			r.usage(tokens, line.Text("model"))
		}
	}
}

func (r *sessionReader) said(line jsonl.Value) {
	s := r.Main()
	for _, thought := range line.Items("thoughts") {
		s.Think(thought.Text("description"), r)
		s.End(r)
	}
	if text := line.Text("content"); text != "" {
		s.Text(line.Text("id"), text, r)
		s.End(r)
	}
}

func (r *sessionReader) tool(call jsonl.Value) {
	t := r.StartTool(call.Text("id"), call.Text("name"), "", r)
	if t == nil {
		return
	}
	r.ReadyTool(t, call.Raw("args"), inputDetail(t.Name, call.Get("args")), r)
	response := call.Get("result", "0", "functionResponse", "response")
	if !response.IsObject() {
		return
	}
	text, failed := response.Text("output"), false
	if e := response.Text("error"); e != "" {
		text, failed = e, true
	}
	result := turn.Result{Text: text, Failed: failed, Output: pluginapi.AppendString(nil, text)}
	result.Created = strings.HasPrefix(text, "Successfully created")
	if t.Detail.Kind == turn.Shell {
		shell(&result, text)
	}
	r.EndTool(t, result, r)
}

var shellBlock = pattern.New(`(?s)Output: (.*?)\n(?:Error: .*?\n)?(?:Exit Code: (\d+))?`)

// shell reads what the model was told of a command.
func shell(r *turn.Result, text string) {
	m := shellBlock.FindStringSubmatch(text)
	if m == nil {
		return
	}
	r.Quiet = true
	if m[1] != "(empty)" {
		r.Stdout = m[1]
	}
	code := 0
	for _, digit := range m[2] {
		code = code*10 + int(digit-'0')
	}
	if m[2] != "" && len(m[2]) < 6 {
		r.ExitCode = &code
	}
}

// usage makes the CLI's figures ours: its input has the cached part in it, its
// output lacks the thoughts.
func (r *sessionReader) usage(tokens jsonl.Value, model string) {
	input, _ := tokens.Int("input")
	output, _ := tokens.Int("output")
	cached, _ := tokens.Int("cached")
	thoughts, _ := tokens.Int("thoughts")
	input, output = max(input-cached, 0), output+thoughts
	r.Event(pluginapi.TokenUsage{InputTokens: &input, OutputTokens: &output, CacheReadTokens: &cached, ThinkingTokens: &thoughts, Model: model})
}
