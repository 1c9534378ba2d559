package host

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
)

// Payload returns the event's own fields as one of pluginapi's payload structs, for a type
// switch:
//
//	switch e := event.Payload().(type) {
//	case pluginapi.TextDelta:
//		fmt.Print(e.Delta)
//	case pluginapi.ApprovalRequest:
//		err = run.Approve(ctx, e.InteractionID, nil)
//	}
//
// It is nil for an event of a type that this version does not know, and for one whose
// fields do not have the types of the struct: Raw has what they are, Decode the error. It
// decodes JSON at each call; to skip events, compare Type with pluginapi/code first.
func (e Event) Payload() pluginapi.Payload {
	if decode := payloads[e.Type]; decode != nil {
		return decode(e.Raw)
	}
	return nil
}

// payloads decode the events of each type.
var payloads = map[pluginapi.Type]func(json.RawMessage) pluginapi.Payload{
	pluginapi.SessionStart{}.EventType():        payload[pluginapi.SessionStart],
	pluginapi.SessionResume{}.EventType():       payload[pluginapi.SessionResume],
	pluginapi.SessionFork{}.EventType():         payload[pluginapi.SessionFork],
	pluginapi.SessionCheckpoint{}.EventType():   payload[pluginapi.SessionCheckpoint],
	pluginapi.SessionEnd{}.EventType():          payload[pluginapi.SessionEnd],
	pluginapi.SessionTitle{}.EventType():        payload[pluginapi.SessionTitle],
	pluginapi.UserMessage{}.EventType():         payload[pluginapi.UserMessage],
	pluginapi.TurnStart{}.EventType():           payload[pluginapi.TurnStart],
	pluginapi.TurnEnd{}.EventType():             payload[pluginapi.TurnEnd],
	pluginapi.StepStart{}.EventType():           payload[pluginapi.StepStart],
	pluginapi.StepEnd{}.EventType():             payload[pluginapi.StepEnd],
	pluginapi.MessageStart{}.EventType():        payload[pluginapi.MessageStart],
	pluginapi.TextDelta{}.EventType():           payload[pluginapi.TextDelta],
	pluginapi.MessageStop{}.EventType():         payload[pluginapi.MessageStop],
	pluginapi.ThinkingStart{}.EventType():       payload[pluginapi.ThinkingStart],
	pluginapi.ThinkingDelta{}.EventType():       payload[pluginapi.ThinkingDelta],
	pluginapi.ThinkingStop{}.EventType():        payload[pluginapi.ThinkingStop],
	pluginapi.ToolCallStart{}.EventType():       payload[pluginapi.ToolCallStart],
	pluginapi.ToolInputDelta{}.EventType():      payload[pluginapi.ToolInputDelta],
	pluginapi.ToolCallReady{}.EventType():       payload[pluginapi.ToolCallReady],
	pluginapi.ToolResult{}.EventType():          payload[pluginapi.ToolResult],
	pluginapi.ToolError{}.EventType():           payload[pluginapi.ToolError],
	pluginapi.FileRead{}.EventType():            payload[pluginapi.FileRead],
	pluginapi.FileWrite{}.EventType():           payload[pluginapi.FileWrite],
	pluginapi.FileCreate{}.EventType():          payload[pluginapi.FileCreate],
	pluginapi.FileDelete{}.EventType():          payload[pluginapi.FileDelete],
	pluginapi.FilePatch{}.EventType():           payload[pluginapi.FilePatch],
	pluginapi.ShellStart{}.EventType():          payload[pluginapi.ShellStart],
	pluginapi.ShellStdoutDelta{}.EventType():    payload[pluginapi.ShellStdoutDelta],
	pluginapi.ShellStderrDelta{}.EventType():    payload[pluginapi.ShellStderrDelta],
	pluginapi.ShellExit{}.EventType():           payload[pluginapi.ShellExit],
	pluginapi.McpToolCallStart{}.EventType():    payload[pluginapi.McpToolCallStart],
	pluginapi.McpToolResult{}.EventType():       payload[pluginapi.McpToolResult],
	pluginapi.McpToolError{}.EventType():        payload[pluginapi.McpToolError],
	pluginapi.SubagentSpawn{}.EventType():       payload[pluginapi.SubagentSpawn],
	pluginapi.SubagentResult{}.EventType():      payload[pluginapi.SubagentResult],
	pluginapi.SubagentError{}.EventType():       payload[pluginapi.SubagentError],
	pluginapi.PluginLoaded{}.EventType():        payload[pluginapi.PluginLoaded],
	pluginapi.PluginInvoked{}.EventType():       payload[pluginapi.PluginInvoked],
	pluginapi.PluginError{}.EventType():         payload[pluginapi.PluginError],
	pluginapi.SkillLoaded{}.EventType():         payload[pluginapi.SkillLoaded],
	pluginapi.SkillInvoked{}.EventType():        payload[pluginapi.SkillInvoked],
	pluginapi.AgentdocRead{}.EventType():        payload[pluginapi.AgentdocRead],
	pluginapi.ImageOutput{}.EventType():         payload[pluginapi.ImageOutput],
	pluginapi.ImageInputAck{}.EventType():       payload[pluginapi.ImageInputAck],
	pluginapi.TodoUpdate{}.EventType():          payload[pluginapi.TodoUpdate],
	pluginapi.Cost{}.EventType():                payload[pluginapi.Cost],
	pluginapi.TokenUsage{}.EventType():          payload[pluginapi.TokenUsage],
	pluginapi.InputRequired{}.EventType():       payload[pluginapi.InputRequired],
	pluginapi.ApprovalRequest{}.EventType():     payload[pluginapi.ApprovalRequest],
	pluginapi.ApprovalPreview{}.EventType():     payload[pluginapi.ApprovalPreview],
	pluginapi.ApprovalGranted{}.EventType():     payload[pluginapi.ApprovalGranted],
	pluginapi.ApprovalDenied{}.EventType():      payload[pluginapi.ApprovalDenied],
	pluginapi.InputAnswered{}.EventType():       payload[pluginapi.InputAnswered],
	pluginapi.ApprovalsChanged{}.EventType():    payload[pluginapi.ApprovalsChanged],
	pluginapi.ModeChanged{}.EventType():         payload[pluginapi.ModeChanged],
	pluginapi.RateLimited{}.EventType():         payload[pluginapi.RateLimited],
	pluginapi.ContextLimitWarning{}.EventType(): payload[pluginapi.ContextLimitWarning],
	pluginapi.ContextCompacted{}.EventType():    payload[pluginapi.ContextCompacted],
	pluginapi.Retry{}.EventType():               payload[pluginapi.Retry],
	pluginapi.Interrupted{}.EventType():         payload[pluginapi.Interrupted],
	pluginapi.Aborted{}.EventType():             payload[pluginapi.Aborted],
	pluginapi.Paused{}.EventType():              payload[pluginapi.Paused],
	pluginapi.Resumed{}.EventType():             payload[pluginapi.Resumed],
	pluginapi.StreamFallback{}.EventType():      payload[pluginapi.StreamFallback],
	pluginapi.Timeout{}.EventType():             payload[pluginapi.Timeout],
	pluginapi.TurnLimit{}.EventType():           payload[pluginapi.TurnLimit],
	pluginapi.AuthError{}.EventType():           payload[pluginapi.AuthError],
	pluginapi.RateLimitError{}.EventType():      payload[pluginapi.RateLimitError],
	pluginapi.ContextExceeded{}.EventType():     payload[pluginapi.ContextExceeded],
	pluginapi.Crash{}.EventType():               payload[pluginapi.Crash],
	pluginapi.ErrorEvent{}.EventType():          payload[pluginapi.ErrorEvent],
	pluginapi.Debug{}.EventType():               payload[pluginapi.Debug],
	pluginapi.Log{}.EventType():                 payload[pluginapi.Log],
	pluginapi.Unknown{}.EventType():             payload[pluginapi.Unknown],
	pluginapi.RunState{}.EventType():            payload[pluginapi.RunState],
	pluginapi.RunEnd{}.EventType():              payload[pluginapi.RunEnd],
}

func payload[P pluginapi.Payload](raw json.RawMessage) pluginapi.Payload {
	var p P
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	return p
}
