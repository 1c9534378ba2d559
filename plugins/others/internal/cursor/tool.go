package cursor

import (
	"strings"

	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// call finds the tool of a line: {"tool_call":{"shellToolCall":{"args":…,"result":…}}}.
// Tools of tomorrow have other names before the same ending.
func call(line jsonl.Value) (name string, body jsonl.Value) {
	for key, value := range line.Fields("tool_call") {
		if base, ok := strings.CutSuffix(key, "ToolCall"); ok {
			return base, value
		}
	}
	return "other", jsonl.Value{}
}

// detail is what a tool is for, by its name and input.
func detail(name string, args jsonl.Value) turn.Detail {
	path := args.Text("path")
	switch name {
	case "shell":
		return turn.Detail{Kind: turn.Shell, Command: args.Text("command")}
	case "read":
		return turn.Detail{Kind: turn.Read, Path: path}
	case "write":
		return turn.Detail{Kind: turn.Write, Path: path}
	case "edit":
		return turn.Detail{Kind: turn.Edit, Path: path}
	case "delete":
		return turn.Detail{Kind: turn.Delete, Path: path}
	}
	return turn.Detail{}
}

// result is how a tool ended: {"success":…}, {"failure":…} or {"rejected":…}.
func result(t *turn.Tool, v jsonl.Value) turn.Result {
	r := turn.Result{Output: v.Raw()}
	success := v.Get("success")
	if !success.IsObject() {
		r.Failed, r.CutOff = true, true
		for _, why := range []jsonl.Value{v.Get("rejected"), v.Get("failure")} {
			for _, key := range []string{"reason", "error", "message"} {
				if r.Text == "" {
					r.Text = why.Text(key)
				}
			}
		}
		if r.Text == "" {
			r.Text = string(v.Raw())
		}
		return r
	}
	switch t.Detail.Kind {
	case turn.Shell:
		r.Quiet, r.Stdout, r.Stderr = true, success.Text("stdout"), success.Text("stderr")
		r.Text = r.Stdout + r.Stderr
		if n, ok := success.Int("exitCode"); ok {
			code := int(n)
			r.ExitCode = &code
			r.Failed = code != 0
		}
	case turn.Edit:
		r.Diff, r.Path = success.Text("diffString"), success.Text("path")
	}
	return r
}
