package main

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// What the tools are called by the models of Codex.
const (
	shellTool  = "exec_command"
	patchTool  = "apply_patch"
	searchTool = "web_search"
	imageTool  = "view_image"
	askTool    = "request_user_input"
	spawnTool  = "spawn_agent"
)

// toolStart begins a tool of one of the items that are tools; nil: it has ended before.
func (d *decoder) toolStart(t *thread, kind string, item jsonl.Value, out turn.Events) *turn.Tool {
	id := item.Text("id")
	switch kind {
	case "commandExecution":
		// Without a process it waits to be approved.
		return d.shellStart(t, id, plainCommand(item), item.Text("cwd"), item.Text("processId") == "", out)
	case "fileChange":
		return d.patchStart(t, item, out)
	case "mcpToolCall":
		return d.mcpStart(t, item, out)
	case "webSearch":
		return d.begin(t, id, searchTool, inputObject("query", item.Text("query")), turn.Detail{}, out)
	case "imageView":
		file := item.Text("path")
		return d.begin(t, id, imageTool, inputObject("path", file), turn.Detail{Kind: turn.Read, Path: file}, out)
	case "collabAgentToolCall":
		return d.begin(t, id, item.Text("tool"), inputObject("prompt", item.Text("prompt")), turn.Detail{}, out)
	default:
		return d.begin(t, id, item.Text("tool"), item.Raw("arguments"), turn.Detail{}, out)
	}
}

func (d *decoder) shellStart(t *thread, id, command, cwd string, waits bool, out turn.Events) *turn.Tool {
	return d.begin(t, id, shellTool, inputObject("command", command, "cwd", cwd),
		turn.Detail{Kind: turn.Shell, Command: command, Cwd: cwd, Waits: waits}, out)
}

func (d *decoder) patchStart(t *thread, item jsonl.Value, out turn.Events) *turn.Tool {
	input := append(item.Get("changes").AppendRaw([]byte(`{"changes":`)), '}')
	return d.begin(t, item.Text("id"), patchTool, input, turn.Detail{}, out)
}

func (d *decoder) mcpStart(t *thread, item jsonl.Value, out turn.Events) *turn.Tool {
	server, tool := item.Text("server"), item.Text("tool")
	return d.begin(t, item.Text("id"), "mcp__"+server+"__"+tool, item.Raw("arguments"),
		turn.Detail{Kind: turn.MCP, Server: server, Tool: tool}, out)
}

// inputObject makes an object of names and values; empty values are left out.
func inputObject(pairs ...string) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(pluginapi.AppendString(b, pairs[i]), ':')
		b = pluginapi.AppendString(b, pairs[i+1])
	}
	return append(b, '}')
}

// plainCommand is the command without the shell that the CLI runs it by.
func plainCommand(item jsonl.Value) string {
	command := item.Text("command")
	words := shellWords(command)
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") && shells[path.Base(words[0])] {
		return words[2]
	}
	return command
}

// shells are those that the CLI runs commands by. What another program takes as its
// -c takes no argument.
var shells = map[string]bool{"bash": true, "zsh": true, "sh": true, "dash": true, "ash": true, "ksh": true}

// shellWords splits a command as a shell does; nil if the text is not one of its words
// and quotes alone.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil
			}
			word.WriteString(text[i+1 : i+1+end])
			i, inWord = i+1+end, true
		case '"':
			closed := false
			for i++; i < len(text) && !closed; i++ {
				switch {
				case text[i] == '"':
					closed = true
					i--
				case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
					i++
					word.WriteByte(text[i])
				default:
					word.WriteByte(text[i])
				}
			}
			if !closed {
				return nil
			}
			inWord = true
		case '\\':
			if i+1 == len(text) {
				return nil
			}
			i++
			word.WriteByte(text[i])
			inWord = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

// toolResult is what an item says of how its tool ended.
func toolResult(tool *turn.Tool, kind string, item jsonl.Value) turn.Result {
	switch kind {
	case "commandExecution":
		return commandResult(tool, item)
	case "fileChange":
		return patchResult(tool, item)
	case "mcpToolCall":
		return mcpResult(item)
	case "webSearch":
		if item.IsArray("results") {
			return turn.Result{Output: item.Raw("results")}
		}
		return turn.Result{Output: item.Get("action").AppendRaw(nil)}
	case "dynamicToolCall":
		if item.Exists("success") && !item.IsNull("success") && !item.Bool("success") {
			return failed("the tool failed")
		}
		return turn.Result{Output: item.Get("contentItems").AppendRaw(nil), DurationMS: item.IntPtr("durationMs")}
	case "collabAgentToolCall":
		if status := item.Text("status"); status == "failed" || status == "interrupted" {
			return failed(status)
		}
		return turn.Result{Output: item.Get("agentsStates").AppendRaw(nil)}
	}
	return turn.Result{}
}

// failed is the result of a tool that did not do what it was asked.
func failed(why string) turn.Result { return turn.Result{Failed: true, Text: why} }

const (
	declined   = "declined"
	notAllowed = "it was not allowed to run"
)

// commandResult is that of a command. One that was declined did not run.
func commandResult(tool *turn.Tool, item jsonl.Value) turn.Result {
	status := item.Text("status")
	if status == declined {
		return failed(notAllowed)
	}
	var reads []string
	for _, action := range item.Items("commandActions") {
		if action.Text("type") == "read" {
			reads = append(reads, action.Text("path"))
		}
	}
	return shellResult(tool, item.Text("aggregatedOutput"), number(item, "exitCode"), item.IntPtr("durationMs"), status == "failed", reads)
}

// shellResult is that of a command that ran: reads are the files that it has read.
func shellResult(tool *turn.Tool, output string, code *int, duration *int64, failed bool, reads []string) turn.Result {
	r := turn.Result{
		Failed: failed, Output: pluginapi.AppendString(nil, output), Stdout: output, Quiet: output == "",
		ExitCode: code, DurationMS: duration,
	}
	if failed {
		r.Text = shellFailure(code, output)
	}
	for _, file := range reads {
		if file != "" {
			r.Files = append(r.Files, pluginapi.FileRead{ToolCallID: tool.ID, Path: file, Nested: pluginapi.Nested{ParentID: tool.Parent()}})
		}
	}
	return r
}

func number(v jsonl.Value, key string) *int {
	n, ok := v.Int(key)
	if !ok {
		return nil
	}
	number := int(n)
	return &number
}

// shellFailure is what a command that failed left.
func shellFailure(code *int, output string) string {
	message := strings.TrimSpace(output)
	if code != nil {
		message = strings.TrimSpace("exit code " + strconv.Itoa(*code) + "\n" + message)
	}
	if message == "" {
		message = "the command failed"
	}
	return message
}

func patchResult(tool *turn.Tool, item jsonl.Value) turn.Result {
	switch item.Text("status") {
	case declined:
		return failed("it was not allowed to change files")
	case "failed":
		return failed("the patch could not be applied")
	}
	var r turn.Result
	output := []byte{'['}
	for _, change := range item.Items("changes") {
		file, diff, kind := change.Text("path"), change.Text("diff"), change.Text("kind", "type")
		var size *int64
		if change.IsString("diff") {
			n := int64(len(diff))
			size = &n
		}
		if moved := change.Text("kind", "move_path"); moved != "" && kind != "add" && kind != "delete" {
			r.Files = append(r.Files, fileEvent(tool, "delete", file, "", nil))
			file = moved
		}
		r.Files = append(r.Files, fileEvent(tool, kind, file, diff, size))
		if len(output) > 1 {
			output = append(output, ',')
		}
		output = append(output, inputObject("kind", kind, "path", file)...)
	}
	r.Output = append(output, ']')
	return r
}

// fileEvent says what a patch did to a file: size is that of a new one.
func fileEvent(tool *turn.Tool, kind, file, diff string, size *int64) pluginapi.Payload {
	nested := pluginapi.Nested{ParentID: tool.Parent()}
	switch kind {
	case "add":
		return pluginapi.FileCreate{ToolCallID: tool.ID, Path: file, ByteCount: size, Nested: nested}
	case "delete":
		return pluginapi.FileDelete{ToolCallID: tool.ID, Path: file, Nested: nested}
	}
	return pluginapi.FilePatch{ToolCallID: tool.ID, Path: file, Diff: diff, Nested: nested}
}

func mcpResult(item jsonl.Value) turn.Result {
	message := item.Text("error", "message")
	if message == "" && item.Text("status") == "failed" {
		message = "the tool failed"
	}
	if message != "" {
		return failed(message)
	}
	return turn.Result{Output: item.Get("result", "content").AppendRaw(nil), DurationMS: item.IntPtr("durationMs")}
}
