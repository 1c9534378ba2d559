package acpagent

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/excerpt"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// translator makes the protocol's updates of a run's events, from the first one on. The same
// events make the same updates. The zero value is ready.
type translator struct {
	seq      uint64            // of the event
	spoke    bool              // a piece of the message was sent
	thought  bool              // and of the thought
	tools    map[string]string // names of tools whose calls were sent, by the call
	commands []acp.AvailableCommand
	fresh    bool // commands were added, and not sent

	interrupted bool
	limited     bool
	failure     *pluginapi.Error // of the turn
}

// mostOutput bounds what is sent of a tool's result.
const mostOutput = 64 << 10

// turnBegins forgets how the last turn ended.
func (t *translator) turnBegins() { t.interrupted, t.limited, t.failure = false, false, nil }

// turnEnds says how the turn has ended.
func (t *translator) turnEnds() (acp.StopReason, error) {
	defer t.turnBegins()
	switch {
	case t.interrupted:
		return acp.StopReasonCancelled, nil
	case t.limited:
		return acp.StopReasonMaxTurnRequests, nil
	case t.failure != nil:
		return "", t.failure
	}
	return acp.StopReasonEndTurn, nil
}

// updates are what an event says: acp.SessionUpdate, notice or compaction; none for those
// that are for amux alone.
func (t *translator) updates(payload pluginapi.Payload) (out []any) {
	say := func(u any) { out = append(out, u) }
	if _, more := payload.(pluginapi.SkillLoaded); t.fresh && !more {
		t.fresh = false
		say(acp.SessionUpdate{AvailableCommandsUpdate: &acp.SessionAvailableCommandsUpdate{SessionUpdate: "available_commands_update", AvailableCommands: append([]acp.AvailableCommand{}, t.commands...)}})
	}
	switch p := payload.(type) {
	case pluginapi.UserMessage:
		t.turnBegins()
		if p.ParentID == "" {
			say(acp.UpdateUserMessageText(p.Text))
		}
	case pluginapi.TextDelta:
		if p.ParentID == "" && p.Delta != "" {
			t.spoke = true
			say(acp.UpdateAgentMessageText(p.Delta))
		}
	case pluginapi.MessageStop:
		if p.ParentID == "" && !t.spoke && p.Text != "" {
			say(acp.UpdateAgentMessageText(p.Text))
		}
		if p.ParentID == "" {
			t.spoke = false
		}
	case pluginapi.ThinkingDelta:
		if p.ParentID == "" && p.Delta != "" {
			t.thought = true
			say(acp.UpdateAgentThoughtText(p.Delta))
		}
	case pluginapi.ThinkingStop:
		if p.ParentID == "" && !t.thought && p.Thinking != "" {
			say(acp.UpdateAgentThoughtText(p.Thinking))
		}
		if p.ParentID == "" {
			t.thought = false
		}
	case pluginapi.ToolCallStart:
		say(t.call(p.ToolCallID, p.ToolName))
	case pluginapi.ToolCallReady:
		if t.tools[p.ToolCallID] == "" {
			say(t.call(p.ToolCallID, p.ToolName))
		}
		u := toolUpdate(p.ToolName, "", p.Input)
		say(acp.UpdateToolCall(acp.ToolCallId(p.ToolCallID), acp.WithUpdateStatus(acp.ToolCallStatusInProgress), acp.WithUpdateTitle(*u.Title), acp.WithUpdateKind(*u.Kind),
			acp.WithUpdateContent(u.Content), acp.WithUpdateLocations(u.Locations), acp.WithUpdateRawInput(p.Input)))
	case pluginapi.ToolResult:
		say(t.ended(p.ToolCallID, acp.ToolCallStatusCompleted, outputOf(p.Output)))
	case pluginapi.ToolError:
		say(t.ended(p.ToolCallID, acp.ToolCallStatusFailed, p.Error))
	case pluginapi.TodoUpdate:
		if p.ParentID == "" {
			say(planOf(p.Items))
		}
	case pluginapi.SkillLoaded:
		if p.Source == "command" {
			t.commands = append(t.commands, acp.AvailableCommand{Name: strings.TrimPrefix(p.SkillName, "/"), Description: p.SkillName})
			t.fresh = true
		}
	case pluginapi.SessionTitle:
		title := p.Title
		say(acp.SessionUpdate{SessionInfoUpdate: &acp.SessionSessionInfoUpdate{SessionUpdate: "session_info_update", Title: &title}})
	case pluginapi.ContextLimitWarning:
		if p.UsedTokens != nil && p.MaxTokens != nil {
			say(acp.SessionUpdate{UsageUpdate: &acp.SessionUsageUpdate{SessionUpdate: "usage_update", Used: int(*p.UsedTokens), Size: int(*p.MaxTokens)}})
		}
	case pluginapi.ContextCompacted:
		c := compaction{Kind: "compaction_update", ID: "compaction-" + strconv.FormatUint(t.seq, 10), Status: "completed"}
		if p.Summary != "" {
			c.Summary = []acp.ContentBlock{acp.TextBlock(p.Summary)}
		}
		say(c)
	case pluginapi.ApprovalsChanged:
		say(acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{SessionUpdate: "current_mode_update", CurrentModeId: acp.SessionModeId(p.Approve)}})
	case pluginapi.RateLimited:
		say(notice{Kind: "notice", Severity: "warning", Title: "Rate limited" + waiting(", goes on in ", p.RetryAfterMS)})
	case pluginapi.Retry:
		say(notice{Kind: "notice", Severity: "warning", Title: fmt.Sprintf("Try %d", p.Attempt) + waiting(" in ", p.DelayMS), Description: p.Reason})
	case pluginapi.ImageOutput:
		if p.Base64 != "" && p.ParentID == "" {
			say(acp.UpdateAgentMessage(acp.ImageBlock(p.Base64, p.MimeType)))
		}
	case pluginapi.Interrupted, pluginapi.Aborted:
		t.interrupted = true
	case pluginapi.TurnLimit:
		t.limited = true
	case pluginapi.AuthError:
		t.failure = &pluginapi.Error{Code: pluginapi.CodeAuth, Msg: p.Message, Hint: p.Guidance}
	case pluginapi.RateLimitError:
		t.failure = &pluginapi.Error{Code: pluginapi.CodeRateLimited, Msg: p.Message}
	case pluginapi.ErrorEvent:
		if !p.Recoverable {
			t.failure = &pluginapi.Error{Code: p.Code, Msg: p.Message, Hint: p.Hint}
		}
	case pluginapi.RunEnd:
		if p.Code != "" && t.failure == nil {
			t.failure = &pluginapi.Error{Code: p.Code, Msg: p.Message, Hint: p.Hint}
		}
	}
	return out
}

// waiting says a delay in milliseconds; nothing if there is none.
func waiting(before string, ms *int64) string {
	if ms == nil || *ms <= 0 {
		return ""
	}
	return before + (time.Duration(*ms) * time.Millisecond).Round(100*time.Millisecond).String()
}

// call announces a tool call.
func (t *translator) call(id, name string) acp.SessionUpdate {
	if t.tools == nil {
		t.tools = map[string]string{}
	}
	t.tools[id] = name
	return acp.StartToolCall(acp.ToolCallId(id), name, acp.WithStartKind(kindOf(name, "")), acp.WithStartStatus(acp.ToolCallStatusPending))
}

// ended is the end of a tool call.
func (t *translator) ended(id string, status acp.ToolCallStatus, text string) acp.SessionUpdate {
	delete(t.tools, id)
	options := []acp.ToolCallUpdateOpt{acp.WithUpdateStatus(status)}
	if text != "" {
		options = append(options, acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolContent(acp.TextBlock(clip(text)))}))
	}
	return acp.UpdateToolCall(acp.ToolCallId(id), options...)
}

// clip shortens an output.
func clip(text string) string {
	text, cut := excerpt.Text(text, mostOutput)
	if cut {
		text += "…"
	}
	return text
}

// outputOf is the result of a tool as a text.
func outputOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// planOf is a list of what is to be done.
func planOf(items []pluginapi.TodoItem) acp.SessionUpdate {
	entries := make([]acp.PlanEntry, 0, len(items))
	for _, item := range items {
		status := acp.PlanEntryStatus(item.Status)
		if status != acp.PlanEntryStatusInProgress && status != acp.PlanEntryStatusCompleted {
			status = acp.PlanEntryStatusPending
		}
		entries = append(entries, acp.PlanEntry{Content: item.Text, Priority: acp.PlanEntryPriorityMedium, Status: status})
	}
	return acp.UpdatePlan(entries...)
}

// kindOf is what the protocol calls a tool: by the kind that its adapter says, or its name.
func kindOf(name, kind string) acp.ToolKind {
	switch kind {
	case pluginapi.ToolShell, pluginapi.ToolCommand:
		return acp.ToolKindExecute
	case pluginapi.ToolFetch:
		return acp.ToolKindFetch
	}
	name = strings.ToLower(name)
	for _, k := range []struct {
		kind  acp.ToolKind
		words []string
	}{
		{acp.ToolKindExecute, []string{"bash", "shell", "exec", "terminal", "command"}},
		{acp.ToolKindEdit, []string{"edit", "write", "patch", "replace", "create"}},
		{acp.ToolKindDelete, []string{"delete", "remove"}},
		{acp.ToolKindFetch, []string{"fetch", "web"}},
		{acp.ToolKindSearch, []string{"grep", "glob", "search", "find", "list"}},
		{acp.ToolKindRead, []string{"read", "view"}},
		{acp.ToolKindThink, []string{"think", "todo", "task"}},
	} {
		for _, word := range k.words {
			if strings.Contains(name, word) {
				return k.kind
			}
		}
	}
	return acp.ToolKindOther
}

// toolUpdate is what the input of a tool says of its call.
func toolUpdate(name, kind string, input json.RawMessage) acp.ToolCallUpdate {
	var in struct {
		Command   string `json:"command"`
		FilePath  string `json:"file_path"`
		Path      string `json:"path"`
		Content   string `json:"content"`
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
		Pattern   string `json:"pattern"`
		URL       string `json:"url"`
	}
	_ = json.Unmarshal(input, &in) // other inputs say nothing here
	path := in.FilePath
	if path == "" {
		path = in.Path
	}
	title, is := name, kindOf(name, kind)
	for _, detail := range []string{in.Command, path, in.Pattern, in.URL} {
		if detail != "" {
			title += " " + strings.ToValidUTF8(detail[:min(len(detail), 200)], "")
			break
		}
	}
	u := acp.ToolCallUpdate{Title: &title, Kind: &is}
	if path != "" {
		u.Locations = []acp.ToolCallLocation{{Path: path}}
	}
	switch {
	case path == "" || len(input) > mostOutput:
	case in.OldString != "" || in.NewString != "":
		u.Content = []acp.ToolCallContent{acp.ToolDiffContent(path, in.NewString, in.OldString)}
	case in.Content != "":
		u.Content = []acp.ToolCallContent{acp.ToolDiffContent(path, in.Content)}
	}
	return u
}

// toolCallOf is what a request for permission shows.
func toolCallOf(q host.Question) acp.ToolCallUpdate {
	var e pluginapi.ApprovalRequest
	_ = json.Unmarshal(q.Event, &e) // what it lacks is empty
	u := toolUpdate(e.ToolName, e.ToolKind, e.Input)
	if e.Detail != "" {
		title := e.Action + ": " + e.Detail
		if e.ToolName != "" {
			title = e.ToolName + ": " + e.Detail
		}
		title = clip(title)
		u.Title = &title
	}
	u.ToolCallId, u.RawInput = acp.ToolCallId(e.ToolCallID), e.Input
	if e.ToolCallID == "" {
		u.ToolCallId = acp.ToolCallId(q.ID)
	}
	if len(e.Input) == 0 {
		u.RawInput = nil
	}
	for _, path := range e.Paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(q.Cwd, path)
		}
		u.Locations = append(u.Locations, acp.ToolCallLocation{Path: path})
	}
	if q.Diff != "" {
		u.Content = append(u.Content, acp.ToolContent(acp.TextBlock("```diff\n"+clip(q.Diff)+"\n```")))
	}
	status := acp.ToolCallStatusPending
	u.Status = &status
	return u
}
