package turn

import (
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Kind says what a tool is for, as far as there are events for it.
type Kind int

// The kinds of tools.
const (
	Other    Kind = iota
	Shell         // runs a command
	Read          // reads a file
	Write         // writes a whole file
	Edit          // changes a part of a file
	Delete        // deletes a file
	MCP           // belongs to an MCP server
	Subagent      // has another agent work
	Todo          // keeps a list of things to do
	Skill         // loads a skill
)

// Detail is what the input of a tool means. Which fields count depends on Kind.
type Detail struct {
	Kind    Kind
	Command string // Shell
	// Described says that Command is words about the command, not the command itself.
	Described bool // Shell
	// Waits says that the command waits for its approval: Run says when it runs.
	Waits  bool   // Shell
	Cwd    string // Shell
	Path   string // of a file
	Bytes  *int64 // Write: how many
	Diff   string // Edit: what it will change
	Server string // MCP
	Tool   string // MCP: the server's name for it
	Agent  string // Subagent: its kind. Skill: its name
	Prompt string // Subagent
	Todos  []pluginapi.TodoItem
}

// ToolKind is what the kind is called in an approval request.
func (d Detail) ToolKind() string {
	switch d.Kind {
	case Shell:
		if d.Described {
			return pluginapi.ToolCommand
		}
		return pluginapi.ToolShell
	case Read, Write, Edit, Delete:
		return pluginapi.ToolFile
	}
	return ""
}

// Tool is one use of a tool, from its beginning to its result.
type Tool struct {
	ID, Name string
	Detail   Detail
	Note     any // the adapter's own

	parent   string
	ready    bool
	running  bool   // shell_start was emitted
	answered bool   // it works on in the background
	over     bool   // EndTask has told how its work went
	streamed []byte // of its input, until that is told whole
	shown    string // of a shell's output so far, as Printed took it
	printed  int    // bytes of it, as Print took them
}

func (t *Tool) nest() pluginapi.Nested { return pluginapi.Nested{ParentID: t.parent} }

// Parent is the tool_call_id of the sub-agent that uses it; empty: the main
// conversation.
func (t *Tool) Parent() string { return t.parent }

// Background reports whether it has its result, and goes on.
func (t *Tool) Background() bool { return t.answered }

// Ready reports whether its input has been told.
func (t *Tool) Ready() bool { return t.ready }

// Streamed is what Input was given so far; empty once the tool is ready.
func (t *Tool) Streamed() []byte { return t.streamed }

// Input says a piece of the tool's input, as JSON text.
func (t *Tool) Input(delta string, out Events) {
	if delta != "" && !t.ready {
		t.streamed = append(t.streamed, delta...)
		out.Event(pluginapi.ToolInputDelta{ToolCallID: t.ID, Delta: delta, Nested: t.nest()})
	}
}

// ReadyTool tells the whole input of a tool and what it means, once. A nil input
// is an empty one.
func (w *Writer) ReadyTool(t *Tool, input json.RawMessage, d Detail, out Events) {
	if t.ready {
		return
	}
	t.ready, t.streamed, t.Detail = true, nil, d
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	out.Event(pluginapi.ToolCallReady{ToolCallID: t.ID, ToolName: t.Name, Input: input, Nested: t.nest()})
	switch d.Kind {
	case Shell:
		if !d.Waits {
			w.Run(t, out)
		}
	case MCP:
		out.Event(pluginapi.McpToolCallStart{ToolCallID: t.ID, Server: d.Server, ToolName: d.Tool, Input: input, Nested: t.nest()})
	case Subagent:
		out.Event(pluginapi.SubagentSpawn{SubagentID: t.ID, AgentName: d.Agent, Prompt: d.Prompt, Nested: t.nest()})
	case Skill:
		out.Event(pluginapi.SkillInvoked{SkillName: d.Agent, Nested: t.nest()})
	}
}

// Run says, once, that a shell command runs.
func (w *Writer) Run(t *Tool, out Events) {
	if t.Detail.Kind == Shell && !t.running {
		t.running = true
		out.Event(pluginapi.ShellStart{ToolCallID: t.ID, Command: t.Detail.Command, Cwd: t.Detail.Cwd, Nested: t.nest()})
	}
}

// Print says a piece of what a shell command prints.
func (w *Writer) Print(t *Tool, delta string, out Events) {
	if t.Detail.Kind != Shell || delta == "" {
		return
	}
	t.printed += len(delta)
	out.Event(pluginapi.ShellStdoutDelta{ToolCallID: t.ID, Delta: delta, Nested: t.nest()})
}

// Printed tells what a shell command has printed so far; only what is new of it
// becomes an event.
func (w *Writer) Printed(t *Tool, soFar string, out Events) {
	if t.Detail.Kind != Shell || len(soFar) <= len(t.shown) || !strings.HasPrefix(soFar, t.shown) {
		return
	}
	out.Event(pluginapi.ShellStdoutDelta{ToolCallID: t.ID, Delta: soFar[len(t.shown):], Nested: t.nest()})
	t.shown = soFar
}

// Result is how a tool ended.
type Result struct {
	// Output is the tool's own answer; nil is null.
	Output json.RawMessage
	// Text is the answer as text: what a command printed, what a sub-agent says,
	// the reason of a failure.
	Text   string
	Failed bool
	// CutOff: it did not end by itself, so that Text is not the tool's.
	CutOff bool
	// Background: the tool has its answer, and what it began goes on
	// until it is ended once more.
	Background bool

	Stdout   string // Shell; if empty and not Quiet, Text
	Stderr   string // Shell
	Quiet    bool   // Shell: it printed nothing, whatever Text says
	ExitCode *int   // Shell; nil: not told
	Created  bool   // Write: the file is new
	Path     string // instead of the input's
	Diff     string // instead of the input's
	// Files are the events of what it did to files, where the input's Kind does not say it.
	Files []pluginapi.Payload

	DurationMS *int64
}

// EndTool gives a tool its result, once.
func (w *Writer) EndTool(t *Tool, r Result, out Events) {
	if t.answered {
		w.EndTask(t, r, out)
		return
	}
	w.Stream(t.parent).End(out)
	d := t.Detail
	if r.Path != "" {
		d.Path = r.Path
	}
	if r.Diff != "" {
		d.Diff = r.Diff
	}
	t.answered = r.Background && !r.Failed
	w.endShell(t, r, out)
	if !t.answered {
		w.forget(t, r.CutOff, out)
	}
	if r.Failed {
		if d.Kind == MCP {
			out.Event(pluginapi.McpToolError{ToolCallID: t.ID, Server: d.Server, ToolName: d.Tool, Error: r.Text, Nested: t.nest()})
		}
		out.Event(pluginapi.ToolError{ToolCallID: t.ID, ToolName: t.Name, Error: r.Text, Nested: t.nest()})
		if d.Kind == Subagent && !t.over {
			out.Event(pluginapi.SubagentError{SubagentID: t.ID, AgentName: d.Agent, Error: r.Text, Nested: t.nest()})
		}
		return
	}
	output := r.Output
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	for _, file := range r.Files {
		out.Event(file)
	}
	switch d.Kind {
	case MCP:
		out.Event(pluginapi.McpToolResult{ToolCallID: t.ID, Server: d.Server, ToolName: d.Tool, Output: output, Nested: t.nest()})
	case Read:
		out.Event(pluginapi.FileRead{ToolCallID: t.ID, Path: d.Path, Nested: t.nest()})
	case Write:
		if r.Created {
			out.Event(pluginapi.FileCreate{ToolCallID: t.ID, Path: d.Path, ByteCount: d.Bytes, Nested: t.nest()})
		} else {
			out.Event(pluginapi.FileWrite{ToolCallID: t.ID, Path: d.Path, ByteCount: d.Bytes, Nested: t.nest()})
		}
	case Edit:
		out.Event(pluginapi.FilePatch{ToolCallID: t.ID, Path: d.Path, Diff: d.Diff, Nested: t.nest()})
	case Delete:
		out.Event(pluginapi.FileDelete{ToolCallID: t.ID, Path: d.Path, Nested: t.nest()})
	case Todo:
		out.Event(pluginapi.TodoUpdate{Items: d.Todos, Nested: t.nest()})
	}
	out.Event(pluginapi.ToolResult{ToolCallID: t.ID, ToolName: t.Name, Output: output, DurationMS: r.DurationMS, Nested: t.nest()})
	if d.Kind == Subagent && !t.answered && !t.over {
		out.Event(pluginapi.SubagentResult{SubagentID: t.ID, AgentName: d.Agent, Summary: r.Text, Nested: t.nest()})
	}
}

// EndTask ends the work of a tool that has its result, or that of a sub-agent whose result
// is yet to be told. The conversation that it is part of goes on meanwhile.
func (w *Writer) EndTask(t *Tool, r Result, out Events) {
	if !t.answered && t.Detail.Kind != Subagent || t.over {
		return
	}
	t.over = true
	if t.answered {
		w.forget(t, r.CutOff, out)
	} else {
		w.Stream(t.ID).end(r.CutOff, out)
	}
	w.endShell(t, r, out)
	switch {
	case t.Detail.Kind != Subagent:
	case r.Failed:
		out.Event(pluginapi.SubagentError{SubagentID: t.ID, AgentName: t.Detail.Agent, Error: r.Text, Nested: t.nest()})
	default:
		out.Event(pluginapi.SubagentResult{SubagentID: t.ID, AgentName: t.Detail.Agent, Summary: r.Text, Nested: t.nest()})
	}
}

// endShell tells the rest of what a command printed, and its exit unless it goes on. One
// that waited and failed with neither output nor exit code did not run.
func (w *Writer) endShell(t *Tool, r Result, out Events) {
	if t.Detail.Kind != Shell {
		return
	}
	if t.Detail.Waits {
		if !t.running && r.Failed && r.ExitCode == nil && r.Stdout == "" {
			return
		}
		w.Run(t, out)
	}
	stdout := r.Stdout
	if stdout == "" && !r.Quiet && !r.CutOff {
		stdout = r.Text
	}
	switch {
	case stdout == "":
	case t.printed > 0:
		w.Print(t, stdout[min(t.printed, len(stdout)):], out)
	case strings.HasPrefix(stdout, t.shown):
		w.Printed(t, stdout, out)
	case t.shown == "" || !strings.HasPrefix(t.shown, stdout):
		out.Event(pluginapi.ShellStdoutDelta{ToolCallID: t.ID, Delta: stdout, Nested: t.nest()})
	}
	if r.Stderr != "" {
		out.Event(pluginapi.ShellStderrDelta{ToolCallID: t.ID, Delta: r.Stderr, Nested: t.nest()})
	}
	if t.answered && !t.over {
		return
	}
	out.Event(pluginapi.ShellExit{ToolCallID: t.ID, ExitCode: r.ExitCode, DurationMS: r.DurationMS, Nested: t.nest()})
}

// Replacement is an edit as a diff without places in the file.
func Replacement(before, after string) string {
	return prefixLines("-", before) + prefixLines("+", after)
}

func prefixLines(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}
