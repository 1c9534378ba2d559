package turn

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

// stored keeps the types of the events, those of an id with it.
func stored(types *[]string) *Stored {
	return &Stored{Yield: func(p pluginapi.Payload, _ time.Time) bool {
		name := string(p.EventType())
		switch p := p.(type) {
		case pluginapi.ToolError:
			name += " " + p.ToolCallID
		case pluginapi.SubagentResult:
			name += " " + p.SubagentID
		case pluginapi.SubagentError:
			name += " " + p.SubagentID
		}
		*types = append(*types, name)
		return true
	}}
}

// subagent begins one, and a tool within it.
func subagent(s *Stored, id string) *Tool {
	t := s.StartTool(id, "Agent", "", s)
	s.ReadyTool(t, nil, Detail{Kind: Subagent}, s)
	s.StartTool(id+"-inner", "Bash", id, s)
	return t
}

// What goes on in the background outlives its turn, with all that is part of it; the rest
// ends with the turn, inner tools first.
func TestBackgroundOutlivesTurn(t *testing.T) {
	var got []string
	s := stored(&got)
	s.Prompt("1", "go")
	back := subagent(s, "back")
	s.EndTool(back, Result{Background: true}, s)
	subagent(s, "fore")
	got = nil
	s.Prompt("2", "on")
	s.EndTool(back, Result{Text: "done"}, s)
	s.End("id")
	want := []string{
		"tool_error fore-inner", "tool_error fore", "subagent_error fore", "turn_end",
		"turn_start", "user_message", "subagent_result back", "tool_error back-inner", "turn_end", "session_end",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A tool that says it is part of itself ends with its turn.
func TestToolWithinItself(t *testing.T) {
	var got []string
	s := stored(&got)
	s.Prompt("1", "go")
	s.StartTool("loop", "Agent", "loop", s)
	s.EndTurn()
	if !slices.Contains(got, "tool_error loop") {
		t.Errorf("got %q", got)
	}
}

// A sub-agent may tell how it went before its tool has its result: it ends once.
func TestTaskEndsBeforeResult(t *testing.T) {
	var got []string
	s := stored(&got)
	tool := subagent(s, "b")
	got = nil
	s.EndTask(tool, Result{Text: "done"}, s)
	s.EndTask(tool, Result{Text: "twice"}, s)
	s.EndTool(tool, Result{Text: "done"}, s)
	if want := []string{"subagent_result b", "tool_result"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
