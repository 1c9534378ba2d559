package main

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// stream is the codec of one process with the driver stream-json.
type stream struct {
	turn.Base
	resumed bool
	message string // of the last line "error"
}

func newStream(start *pluginapi.Start) *stream {
	s := &stream{
		Base:    turn.Base{Agent: agentID, Guidance: authGuidance, Refusals: refusals, Start: start, Tested: testedVersion},
		resumed: start.GetOptions().GetResume() != "",
	}
	s.Prompts = 1 // in the plan
	return s
}

// Handle turns one input into outputs.
func (s *stream) Handle(in *pluginapi.Input, out *sdk.Out) error {
	s.HandleOnce(in, out, s.line)
	return nil
}

func (s *stream) line(line jsonl.Value, out *sdk.Out) bool {
	main := s.Main()
	switch string(line.Bytes("type")) {
	case "init":
		s.Session = line.Text("session_id")
		out.Event(pluginapi.SessionStart{SessionID: s.Session, Model: line.Text("model"), Resumed: s.resumed})
		if s.resumed {
			out.Event(pluginapi.SessionResume{SessionID: s.Session})
		}
		s.TurnStart(out)
	case "message":
		if line.Text("role") == "assistant" {
			main.Text("", line.Text("content"), out)
		}
	case "tool_use":
		if t := s.StartTool(line.Text("tool_id"), line.Text("tool_name"), "", out); t != nil {
			input := line.Get("parameters")
			s.ReadyTool(t, input.Raw(), inputDetail(t.Name, input), out)
		}
	case "tool_result":
		s.toolResult(line, out)
	case "error":
		s.message = line.Text("message")
		if line.Text("severity") != "error" {
			out.Event(pluginapi.Debug{Level: "warn", Message: s.message})
		}
	case "result":
		s.result(line, out)
	default:
		return false
	}
	return true
}

func (s *stream) toolResult(line jsonl.Value, out *sdk.Out) {
	t := s.StartTool(line.Text("tool_id"), "", "", out)
	if t == nil {
		return
	}
	text := line.Text("output")
	r := turn.Result{Text: text, Output: pluginapi.AppendString(nil, text), Failed: line.Text("status") == "error"}
	r.Created = strings.HasPrefix(text, "Successfully created")
	if t.Detail.Kind == turn.Shell {
		r.Stdout, r.Quiet = text, true
	}
	if r.Failed {
		if message := line.Text("error", "message"); message != "" {
			r.Text = message
		}
		if kind := line.Text("error", "type"); kind == "tool_not_registered" {
			r.Text += " (" + kind + ")"
		}
	}
	s.EndTool(t, r, out)
}

// result ends the turn, the only one.
func (s *stream) result(line jsonl.Value, out *sdk.Out) {
	s.Main().End(out)
	for model, u := range line.Fields("stats", "models") {
		if total, _ := u.Int("total_tokens"); total > 0 {
			out.Event(pluginapi.TokenUsage{
				InputTokens: u.IntPtr("input"), OutputTokens: u.IntPtr("output_tokens"), CacheReadTokens: u.IntPtr("cached"), Model: model,
			})
		}
	}
	var outcome *pluginapi.Outcome
	if line.Text("status") != "success" {
		text := line.Text("error", "message")
		if text == "" {
			text = s.message
		}
		outcome = failure.Of(body(text))
	}
	s.TurnEnd(outcome, nil, out)
	s.Idle(out)
}

// inputDetail is what a tool is for, by its whole input.
func inputDetail(name string, input jsonl.Value) turn.Detail {
	path := input.Text("file_path")
	switch name {
	case "run_shell_command":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command"), Cwd: input.Text("dir_path")}
	case "read_file":
		return turn.Detail{Kind: turn.Read, Path: path}
	case "write_file":
		n := int64(len(input.Bytes("content")))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	case "replace":
		return turn.Detail{Kind: turn.Edit, Path: path, Diff: turn.Replacement(input.Text("old_string"), input.Text("new_string"))}
	case "write_todos":
		d := turn.Detail{Kind: turn.Todo}
		for _, todo := range input.Items("todos") {
			d.Todos = append(d.Todos, pluginapi.TodoItem{Text: todo.Text("description"), Status: todo.Text("status")})
		}
		return d
	}
	return turn.Detail{}
}
