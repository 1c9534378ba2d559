package main

import (
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// ofServer is a tool of an MCP server: mcp__server__tool.
func ofServer(name string) (d turn.Detail, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return d, false
	}
	server, tool, _ := strings.Cut(rest, "__")
	return turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}, true
}

// detail is what a tool is for, by its whole input.
func detail(name string, input jsonl.Value) turn.Detail {
	if d, ok := ofServer(name); ok {
		return d
	}
	path := input.Text("path")
	switch name {
	case "terminal":
		return turn.Detail{Kind: turn.Shell, Command: input.Text("command"), Cwd: input.Text("workdir")}
	case "read_file":
		return turn.Detail{Kind: turn.Read, Path: path}
	case "write_file":
		n := int64(len(input.Bytes("content")))
		return turn.Detail{Kind: turn.Write, Path: path, Bytes: &n}
	case "patch":
		if path != "" {
			return turn.Detail{Kind: turn.Edit, Path: path, Diff: turn.Replacement(input.Text("old_string"), input.Text("new_string"))}
		}
	}
	return turn.Detail{}
}

// answer reads what a tool has answered: text that is JSON.
func answer(d turn.Detail, output string) turn.Result {
	r := turn.Result{Text: output, Output: pluginapi.AppendString(nil, output)}
	var told struct {
		Output   string
		ExitCode *int `json:"exit_code"`
		Error    any
		Success  *bool
		Diff     string
	}
	if json.Unmarshal([]byte(output), &told) != nil {
		return r
	}
	r.Output = json.RawMessage(output)
	if text, ok := told.Error.(string); ok && text != "" {
		r.Text = text
	}
	r.Failed = told.Success != nil && !*told.Success || told.Error != nil && told.Error != "" && told.Error != false
	if d.Kind == turn.Shell {
		r.Quiet, r.Stdout, r.ExitCode = true, told.Output, told.ExitCode
		r.Failed = told.ExitCode != nil && *told.ExitCode != 0
		if r.Text == output {
			r.Text = told.Output
		}
	}
	if told.Diff != "" {
		r.Diff = told.Diff
	}
	return r
}
