package pluginapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi/code"
)

// Type names an event. Receivers keep types they do not know.
type Type string

// Payload is the part of an event that is its own: one of the structs below. Its
// JSON is a flat object in snake_case, to which the host adds type, run_id, seq,
// time and agent. Unknown figures are null (nil pointers), never 0.
type Payload interface{ EventType() Type }

// Session and conversation.
type (
	// SessionStart is the first event about the agent's own conversation.
	SessionStart struct {
		SessionID  string   `json:"session_id"`
		Resumed    bool     `json:"resumed"`
		ForkedFrom string   `json:"forked_from,omitempty"`
		Model      string   `json:"model,omitempty"`
		Version    string   `json:"version,omitempty"` // the agent program's
		Tools      []string `json:"tools,omitempty"`
	}
	SessionResume struct {
		SessionID      string `json:"session_id"`
		PriorTurnCount *int   `json:"prior_turn_count"`
	}
	SessionFork struct {
		SessionID  string `json:"session_id"`
		ForkedFrom string `json:"forked_from"`
	}
	SessionCheckpoint struct {
		SessionID    string `json:"session_id"`
		CheckpointID string `json:"checkpoint_id"`
	}
	SessionEnd struct {
		SessionID string `json:"session_id"`
		TurnCount int    `json:"turn_count"`
		Cost      *Money `json:"cost,omitempty"`
	}
	SessionTitle struct {
		Title string `json:"title"`
	}
	// UserMessage is a prompt on its way to the agent. The host writes it for
	// prompts given through amux; an adapter for those it did not come through.
	UserMessage struct {
		ID   string `json:"id,omitempty"`
		Text string `json:"text"`
		Nested
	}
	TurnStart struct {
		TurnIndex int `json:"turn_index"`
	}
	TurnEnd struct {
		TurnIndex int    `json:"turn_index"`
		Cost      *Money `json:"cost,omitempty"` // of this turn
	}
	StepStart struct {
		TurnIndex int    `json:"turn_index"`
		StepIndex int    `json:"step_index"`
		StepType  string `json:"step_type"`
		Nested
	}
	StepEnd struct {
		TurnIndex int `json:"turn_index"`
		StepIndex int `json:"step_index"`
		Nested
	}
)

// Nested marks what happened inside other work: ParentID is the tool_call_id
// that started it. Empty means the main conversation.
type Nested struct {
	ParentID string `json:"parent_id,omitempty"`
}

// Text and thinking.
type (
	MessageStart struct {
		MessageID string `json:"message_id,omitempty"`
		Nested
	}
	TextDelta struct {
		Delta string `json:"delta"`
		Nested
	}
	// MessageStop carries the whole text of the message.
	MessageStop struct {
		MessageID string `json:"message_id,omitempty"`
		Text      string `json:"text"`
		Aborted   bool   `json:"aborted,omitempty"`
		Nested
	}
	ThinkingStart struct {
		Effort string `json:"effort,omitempty"`
		Nested
	}
	ThinkingDelta struct {
		Delta string `json:"delta"`
		Nested
	}
	ThinkingStop struct {
		Thinking string `json:"thinking"`
		Nested
	}
)

// Tools. Every tool gives tool_call_start, tool_call_ready and one of
// tool_result and tool_error; the shell, file and mcp events are more detail
// under the same tool_call_id.
type (
	ToolCallStart struct {
		ToolCallID string `json:"tool_call_id"`
		ToolName   string `json:"tool_name"`
		Nested
	}
	ToolInputDelta struct {
		ToolCallID string `json:"tool_call_id"`
		Delta      string `json:"delta"`
		Nested
	}
	ToolCallReady struct {
		ToolCallID string          `json:"tool_call_id"`
		ToolName   string          `json:"tool_name"`
		Input      json.RawMessage `json:"input"`
		Nested
	}
	ToolResult struct {
		ToolCallID string          `json:"tool_call_id"`
		ToolName   string          `json:"tool_name"`
		Output     json.RawMessage `json:"output"`
		DurationMS *int64          `json:"duration_ms"`
		Nested
	}
	ToolError struct {
		ToolCallID string `json:"tool_call_id"`
		ToolName   string `json:"tool_name"`
		Error      string `json:"error"`
		Nested
	}
	FileRead struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Path       string `json:"path"`
		Nested
	}
	FileWrite struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Path       string `json:"path"`
		ByteCount  *int64 `json:"byte_count"`
		Nested
	}
	FileCreate struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Path       string `json:"path"`
		ByteCount  *int64 `json:"byte_count"`
		Nested
	}
	FileDelete struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Path       string `json:"path"`
		Nested
	}
	FilePatch struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Path       string `json:"path"`
		Diff       string `json:"diff"`
		Nested
	}
	ShellStart struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Command    string `json:"command"`
		Cwd        string `json:"cwd,omitempty"`
		Nested
	}
	ShellStdoutDelta struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Delta      string `json:"delta"`
		Nested
	}
	ShellStderrDelta struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		Delta      string `json:"delta"`
		Nested
	}
	ShellExit struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		ExitCode   *int   `json:"exit_code"`
		DurationMS *int64 `json:"duration_ms"`
		Nested
	}
	McpToolCallStart struct {
		ToolCallID string          `json:"tool_call_id"`
		Server     string          `json:"server"`
		ToolName   string          `json:"tool_name"`
		Input      json.RawMessage `json:"input"`
		Nested
	}
	McpToolResult struct {
		ToolCallID string          `json:"tool_call_id"`
		Server     string          `json:"server"`
		ToolName   string          `json:"tool_name"`
		Output     json.RawMessage `json:"output"`
		Nested
	}
	McpToolError struct {
		ToolCallID string `json:"tool_call_id"`
		Server     string `json:"server"`
		ToolName   string `json:"tool_name"`
		Error      string `json:"error"`
		Nested
	}
)

// Sub-agents, the agent's own plugins and skills, documents, images.
type (
	SubagentSpawn struct {
		SubagentID string `json:"subagent_id"` // the tool_call_id that started it
		AgentName  string `json:"agent_name"`
		Prompt     string `json:"prompt"`
		Nested
	}
	SubagentResult struct {
		SubagentID string `json:"subagent_id"`
		AgentName  string `json:"agent_name"`
		Summary    string `json:"summary"`
		Cost       *Money `json:"cost,omitempty"`
		Nested
	}
	SubagentError struct {
		SubagentID string `json:"subagent_id"`
		AgentName  string `json:"agent_name"`
		Error      string `json:"error"`
		Nested
	}
	PluginLoaded struct {
		PluginID   string `json:"plugin_id"`
		PluginName string `json:"plugin_name"`
		Version    string `json:"version,omitempty"`
	}
	PluginInvoked struct {
		PluginID   string `json:"plugin_id"`
		PluginName string `json:"plugin_name"`
	}
	PluginError struct {
		PluginID   string `json:"plugin_id"`
		PluginName string `json:"plugin_name"`
		Error      string `json:"error"`
	}
	SkillLoaded struct {
		SkillName string `json:"skill_name"`
		Source    string `json:"source,omitempty"`
	}
	SkillInvoked struct {
		SkillName string `json:"skill_name"`
		Nested
	}
	AgentdocRead struct {
		Path string `json:"path"`
	}
	ImageOutput struct {
		ToolCallID string `json:"tool_call_id,omitempty"`
		MimeType   string `json:"mime_type"`
		Base64     string `json:"base64,omitempty"`
		FilePath   string `json:"file_path,omitempty"`
		Nested
	}
	ImageInputAck struct {
		MimeType string `json:"mime_type"`
	}
	// TodoUpdate is the agent's list of what it means to do, whole.
	TodoUpdate struct {
		Items []TodoItem `json:"items"`
		Nested
	}
)

// TodoItem is one line of a TodoUpdate. Status is pending, in_progress or completed.
type TodoItem struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// Money and tokens, each the difference since the last such event. Money is
// there only if the agent itself names it.
type (
	Money struct {
		USD float64 `json:"usd"`
	}
	Cost struct {
		Cost Money `json:"cost"`
	}
	// TokenUsage: InputTokens without cache reads and writes, which have their
	// own fields; OutputTokens with thinking. nil is unknown.
	TokenUsage struct {
		InputTokens      *int64 `json:"input_tokens"`
		OutputTokens     *int64 `json:"output_tokens"`
		ThinkingTokens   *int64 `json:"thinking_tokens"`
		CacheReadTokens  *int64 `json:"cache_read_tokens"`
		CacheWriteTokens *int64 `json:"cache_write_tokens"`
		Model            string `json:"model,omitempty"`
	}
)

// How the host reads the Detail of an approval request.
const (
	// ToolShell: Detail is the command, word for word, and a POSIX shell reads it.
	ToolShell = "shell"
	// ToolCommand: it runs a command, but for another shell, or Detail only describes
	// it. No pattern of an allow rule covers that.
	ToolCommand = "command"
	// ToolFile: the tool reads or changes Paths, or else Detail.
	ToolFile = "file"
	// ToolFetch: Detail is the address of what is fetched.
	ToolFetch = "fetch"
)

// Interaction.
type (
	InputRequired struct {
		InteractionID string     `json:"interaction_id"`
		Question      string     `json:"question"`
		Context       string     `json:"context,omitempty"`
		Source        string     `json:"source"` // agent or tool
		Questions     []Question `json:"questions,omitempty"`
		Nested
	}
	ApprovalRequest struct {
		InteractionID string          `json:"interaction_id"`
		Action        string          `json:"action"`
		Detail        string          `json:"detail"`
		ToolName      string          `json:"tool_name,omitempty"`
		ToolCallID    string          `json:"tool_call_id,omitempty"`
		Input         json.RawMessage `json:"input,omitempty"`
		RiskLevel     string          `json:"risk_level"` // low, medium, high
		// ToolKind says how the host reads Detail when it applies the user's rules:
		// one of the Tool… constants, or empty for any other tool.
		ToolKind string `json:"tool_kind,omitempty"`
		// Paths are the files that the tool will touch, all of them; empty if Detail is
		// the only one.
		Paths []string `json:"paths,omitempty"`
		Nested
	}
	ApprovalGranted struct {
		InteractionID string `json:"interaction_id"`
		Nested
	}
	// ApprovalPreview comes after the ApprovalRequest of a file that is written whole, if
	// people are to answer it: what it would change in the file as it was then. Diff is a
	// unified diff; Truncated says that it was longer and ends at a line. The host makes it,
	// of text files of at most 1 MiB inside the folder of the run.
	ApprovalPreview struct {
		InteractionID string `json:"interaction_id"`
		Path          string `json:"path"`
		Diff          string `json:"diff"`
		Truncated     bool   `json:"truncated,omitempty"`
	}
	// ApprovalDenied also says that the agent withdrew its request, or refused
	// by a rule of its own (then InteractionID may be the tool_call_id).
	ApprovalDenied struct {
		InteractionID string `json:"interaction_id"`
		Reason        string `json:"reason,omitempty"`
		Nested
	}
	// InputAnswered closes an InputRequired.
	InputAnswered struct {
		InteractionID string `json:"interaction_id"`
		Cancelled     bool   `json:"cancelled,omitempty"`
		Nested
	}
	// ApprovalsChanged: somebody has decided who answers from now on when the agent asks
	// before it acts: ask, auto, deny or rules.
	ApprovalsChanged struct {
		Approve string `json:"approve"`
	}
	ModeChanged struct {
		Mode string `json:"mode"`
	}
)

// Question is one of several that an agent asks at once. The answer to an
// InputRequired with Questions is a JSON object: question → answer.
type Question struct {
	Question string   `json:"question"`
	Header   string   `json:"header,omitempty"`
	Options  []string `json:"options,omitempty"`
	Multiple bool     `json:"multiple,omitempty"`
}

// Trouble, and how the run goes.
type (
	RateLimited struct {
		RetryAfterMS *int64 `json:"retry_after_ms"`
	}
	ContextLimitWarning struct {
		UsedTokens *int64   `json:"used_tokens"`
		MaxTokens  *int64   `json:"max_tokens"`
		PctUsed    *float64 `json:"pct_used"`
	}
	ContextCompacted struct {
		Summary     string `json:"summary"`
		TokensSaved *int64 `json:"tokens_saved"`
	}
	// Retry is one more try of a model request by the agent, or of the run by amux:
	// then Attempt is the number of the start of the agent that follows in DelayMS,
	// and Code, which the agent's tries do not have, is what the last one failed with.
	Retry struct {
		Attempt     int    `json:"attempt"`
		MaxAttempts *int   `json:"max_attempts"`
		Reason      string `json:"reason"`
		DelayMS     *int64 `json:"delay_ms"`
		Code        Code   `json:"code,omitempty"`
	}
	Interrupted struct{}
	Aborted     struct{}
	Paused      struct{}
	Resumed     struct{}
	// StreamFallback says that the agent takes back what it has streamed of an answer,
	// and asks the model again. Capability is what was cut off: text, thinking (the
	// message before it is aborted), or tool_calls, which takes back the message that
	// ended before the call too.
	StreamFallback struct {
		Capability string `json:"capability"`
		Reason     string `json:"reason"`
		Nested
	}
	Timeout struct {
		Kind string `json:"kind"` // run or inactivity
	}
	TurnLimit struct {
		MaxTurns int `json:"max_turns"`
	}
	AuthError struct {
		Message  string `json:"message"`
		Guidance string `json:"guidance"`
	}
	RateLimitError struct {
		Message      string `json:"message"`
		RetryAfterMS *int64 `json:"retry_after_ms"`
	}
	ContextExceeded struct {
		UsedTokens *int64 `json:"used_tokens"`
		MaxTokens  *int64 `json:"max_tokens"`
	}
	Crash struct {
		ExitCode *int   `json:"exit_code"`
		Signal   string `json:"signal,omitempty"`
		Stderr   string `json:"stderr"`
	}
	// ErrorEvent is the event "error".
	ErrorEvent struct {
		Code        Code   `json:"code"`
		Message     string `json:"message"`
		Hint        string `json:"hint,omitempty"`
		Recoverable bool   `json:"recoverable"`
	}
	Debug struct {
		Level   string `json:"level"` // verbose, info, warn
		Message string `json:"message"`
	}
	// Log is a line of the agent that is no event. Offset and Length are given
	// instead of Line where it is longer than MaxLine: the place of its bytes in
	// the stream Source.
	Log struct {
		Source string `json:"source"` // stdout or stderr
		Line   string `json:"line"`
		Offset *int64 `json:"offset,omitempty"`
		Length *int64 `json:"length,omitempty"`
	}
	// Unknown is native data that the adapter recognised as an event but has no
	// name for.
	Unknown struct {
		Raw json.RawMessage `json:"raw"`
	}
)

// What the host alone writes.
type (
	RunState struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Reason string `json:"reason,omitempty"`
	}
	// RunEnd is the last event of every run, once.
	RunEnd struct {
		State      string `json:"state"`
		Reason     string `json:"reason"`
		Code       Code   `json:"code"` // empty on success
		Message    string `json:"message,omitempty"`
		Hint       string `json:"hint,omitempty"` // the way out, where it is not that of the code
		ExitCode   *int   `json:"exit_code"`      // the agent's
		Signal     string `json:"signal,omitempty"`
		SessionID  string `json:"session_id,omitempty"`
		Turns      int    `json:"turns"`
		Tokens     Tokens `json:"tokens"`
		Cost       *Money `json:"cost"`
		DurationMS int64  `json:"duration_ms"`
		// UnknownLines are those of its stdout that the adapter did not know.
		UnknownLines int `json:"unknown_lines,omitempty"`
	}
)

// Tokens are the totals of a run; nil is unknown.
type Tokens struct {
	Input      *int64 `json:"input"`
	Output     *int64 `json:"output"`
	Thinking   *int64 `json:"thinking"`
	CacheRead  *int64 `json:"cache_read"`
	CacheWrite *int64 `json:"cache_write"`
}

// EventType names each payload on the wire.
func (SessionStart) EventType() Type        { return code.EventSessionStart }
func (SessionResume) EventType() Type       { return code.EventSessionResume }
func (SessionFork) EventType() Type         { return code.EventSessionFork }
func (SessionCheckpoint) EventType() Type   { return code.EventSessionCheckpoint }
func (SessionEnd) EventType() Type          { return code.EventSessionEnd }
func (SessionTitle) EventType() Type        { return code.EventSessionTitle }
func (UserMessage) EventType() Type         { return code.EventUserMessage }
func (TurnStart) EventType() Type           { return code.EventTurnStart }
func (TurnEnd) EventType() Type             { return code.EventTurnEnd }
func (StepStart) EventType() Type           { return code.EventStepStart }
func (StepEnd) EventType() Type             { return code.EventStepEnd }
func (MessageStart) EventType() Type        { return code.EventMessageStart }
func (TextDelta) EventType() Type           { return code.EventTextDelta }
func (MessageStop) EventType() Type         { return code.EventMessageStop }
func (ThinkingStart) EventType() Type       { return code.EventThinkingStart }
func (ThinkingDelta) EventType() Type       { return code.EventThinkingDelta }
func (ThinkingStop) EventType() Type        { return code.EventThinkingStop }
func (ToolCallStart) EventType() Type       { return code.EventToolCallStart }
func (ToolInputDelta) EventType() Type      { return code.EventToolInputDelta }
func (ToolCallReady) EventType() Type       { return code.EventToolCallReady }
func (ToolResult) EventType() Type          { return code.EventToolResult }
func (ToolError) EventType() Type           { return code.EventToolError }
func (FileRead) EventType() Type            { return code.EventFileRead }
func (FileWrite) EventType() Type           { return code.EventFileWrite }
func (FileCreate) EventType() Type          { return code.EventFileCreate }
func (FileDelete) EventType() Type          { return code.EventFileDelete }
func (FilePatch) EventType() Type           { return code.EventFilePatch }
func (ShellStart) EventType() Type          { return code.EventShellStart }
func (ShellStdoutDelta) EventType() Type    { return code.EventShellStdoutDelta }
func (ShellStderrDelta) EventType() Type    { return code.EventShellStderrDelta }
func (ShellExit) EventType() Type           { return code.EventShellExit }
func (McpToolCallStart) EventType() Type    { return code.EventMcpToolCallStart }
func (McpToolResult) EventType() Type       { return code.EventMcpToolResult }
func (McpToolError) EventType() Type        { return code.EventMcpToolError }
func (SubagentSpawn) EventType() Type       { return code.EventSubagentSpawn }
func (SubagentResult) EventType() Type      { return code.EventSubagentResult }
func (SubagentError) EventType() Type       { return code.EventSubagentError }
func (PluginLoaded) EventType() Type        { return code.EventPluginLoaded }
func (PluginInvoked) EventType() Type       { return code.EventPluginInvoked }
func (PluginError) EventType() Type         { return code.EventPluginError }
func (SkillLoaded) EventType() Type         { return code.EventSkillLoaded }
func (SkillInvoked) EventType() Type        { return code.EventSkillInvoked }
func (AgentdocRead) EventType() Type        { return code.EventAgentdocRead }
func (ImageOutput) EventType() Type         { return code.EventImageOutput }
func (ImageInputAck) EventType() Type       { return code.EventImageInputAck }
func (TodoUpdate) EventType() Type          { return code.EventTodoUpdate }
func (Cost) EventType() Type                { return code.EventCost }
func (TokenUsage) EventType() Type          { return code.EventTokenUsage }
func (InputRequired) EventType() Type       { return code.EventInputRequired }
func (ApprovalRequest) EventType() Type     { return code.EventApprovalRequest }
func (ApprovalPreview) EventType() Type     { return code.EventApprovalPreview }
func (ApprovalGranted) EventType() Type     { return code.EventApprovalGranted }
func (ApprovalDenied) EventType() Type      { return code.EventApprovalDenied }
func (InputAnswered) EventType() Type       { return code.EventInputAnswered }
func (ApprovalsChanged) EventType() Type    { return code.EventApprovalsChanged }
func (ModeChanged) EventType() Type         { return code.EventModeChanged }
func (RateLimited) EventType() Type         { return code.EventRateLimited }
func (ContextLimitWarning) EventType() Type { return code.EventContextLimitWarning }
func (ContextCompacted) EventType() Type    { return code.EventContextCompacted }
func (Retry) EventType() Type               { return code.EventRetry }
func (Interrupted) EventType() Type         { return code.EventInterrupted }
func (Aborted) EventType() Type             { return code.EventAborted }
func (Paused) EventType() Type              { return code.EventPaused }
func (Resumed) EventType() Type             { return code.EventResumed }
func (StreamFallback) EventType() Type      { return code.EventStreamFallback }
func (Timeout) EventType() Type             { return code.EventTimeout }
func (TurnLimit) EventType() Type           { return code.EventTurnLimit }
func (AuthError) EventType() Type           { return code.EventAuthError }
func (RateLimitError) EventType() Type      { return code.EventRateLimitError }
func (ContextExceeded) EventType() Type     { return code.EventContextExceeded }
func (Crash) EventType() Type               { return code.EventCrash }
func (ErrorEvent) EventType() Type          { return code.EventError }
func (Debug) EventType() Type               { return code.EventDebug }
func (Log) EventType() Type                 { return code.EventLog }
func (Unknown) EventType() Type             { return code.EventUnknown }
func (RunState) EventType() Type            { return code.EventRunState }
func (RunEnd) EventType() Type              { return code.EventRunEnd }

// payloads has one value of every payload type, in the order of this file.
var payloads = []Payload{
	SessionStart{},
	SessionResume{},
	SessionFork{},
	SessionCheckpoint{},
	SessionEnd{},
	SessionTitle{},
	UserMessage{},
	TurnStart{},
	TurnEnd{},
	StepStart{},
	StepEnd{},
	MessageStart{},
	TextDelta{},
	MessageStop{},
	ThinkingStart{},
	ThinkingDelta{},
	ThinkingStop{},
	ToolCallStart{},
	ToolInputDelta{},
	ToolCallReady{},
	ToolResult{},
	ToolError{},
	FileRead{},
	FileWrite{},
	FileCreate{},
	FileDelete{},
	FilePatch{},
	ShellStart{},
	ShellStdoutDelta{},
	ShellStderrDelta{},
	ShellExit{},
	McpToolCallStart{},
	McpToolResult{},
	McpToolError{},
	SubagentSpawn{},
	SubagentResult{},
	SubagentError{},
	PluginLoaded{},
	PluginInvoked{},
	PluginError{},
	SkillLoaded{},
	SkillInvoked{},
	AgentdocRead{},
	ImageOutput{},
	ImageInputAck{},
	TodoUpdate{},
	Cost{},
	TokenUsage{},
	InputRequired{},
	ApprovalRequest{},
	ApprovalPreview{},
	ApprovalGranted{},
	ApprovalDenied{},
	InputAnswered{},
	ApprovalsChanged{},
	ModeChanged{},
	RateLimited{},
	ContextLimitWarning{},
	ContextCompacted{},
	Retry{},
	Interrupted{},
	Aborted{},
	Paused{},
	Resumed{},
	StreamFallback{},
	Timeout{},
	TurnLimit{},
	AuthError{},
	RateLimitError{},
	ContextExceeded{},
	Crash{},
	ErrorEvent{},
	Debug{},
	Log{},
	Unknown{},
	RunState{},
	RunEnd{},
}

// Origin is what an event was in the run of another amux, which this run has driven:
// the field origin of events of the agent amux-remote. Its session ids, and the ids of
// tools and questions, stay where they are.
type Origin struct {
	RunID  string  `json:"run_id"`
	Seq    uint64  `json:"seq"`
	Time   string  `json:"time"` // RFC 3339, by the clock there
	Agent  string  `json:"agent"`
	Origin *Origin `json:"origin,omitempty"` // where that amux drove another one
}

// HostOnly reports whether only the host may write events of that type: they tell
// of the run and of how it ended; an adapter sees a part of it. A plugin that
// sends one breaks the contract.
func HostOnly(t Type) bool {
	switch t {
	case code.EventRunState, code.EventRunEnd, code.EventAborted, code.EventTimeout, code.EventTurnLimit, code.EventCrash,
		code.EventPaused, code.EventResumed, code.EventApprovalPreview, code.EventApprovalsChanged:
		return true
	}
	return false
}

// Types lists every event type that amux knows.
func Types() []Type {
	types := make([]Type, 0, len(payloads))
	for _, p := range payloads {
		types = append(types, p.EventType())
	}
	return types
}

// AppendPayload appends p's JSON object to b. The deltas, which are nearly all
// events of a run, are written by hand; the rest goes through encoding/json.
// Invalid UTF-8 becomes U+FFFD.
func AppendPayload(b []byte, p Payload) ([]byte, error) {
	switch p := p.(type) {
	case TextDelta:
		return appendDelta(b, "", p.Delta, p.ParentID), nil
	case ThinkingDelta:
		return appendDelta(b, "", p.Delta, p.ParentID), nil
	case ToolInputDelta:
		return appendDelta(b, p.ToolCallID, p.Delta, p.ParentID), nil
	case MessageStop:
		if len(p.Text) >= longText {
			return appendMessageStop(b, p), nil
		}
	}
	// An encoder, not Marshal: events are for people too, and hold code, so <, >
	// and & stay what they are.
	buf := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		return b, fmt.Errorf("encode %s: %w", p.EventType(), err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}

// longText is a text for which encoding/json would need too much memory: four
// times its size for a moment.
const longText = 1 << 20

func appendMessageStop(b []byte, p MessageStop) []byte {
	b = append(b, '{')
	if p.MessageID != "" {
		b = AppendString(append(b, `"message_id":`...), p.MessageID)
		b = append(b, ',')
	}
	b = AppendString(append(b, `"text":`...), p.Text)
	if p.Aborted {
		b = append(b, `,"aborted":true`...)
	}
	if p.ParentID != "" {
		b = AppendString(append(b, `,"parent_id":`...), p.ParentID)
	}
	return append(b, '}')
}

func appendDelta(b []byte, toolCallID, delta, parentID string) []byte {
	b = append(b, '{')
	if toolCallID != "" {
		b = AppendString(append(b, `"tool_call_id":`...), toolCallID)
		b = append(b, ',')
	}
	b = AppendString(append(b, `"delta":`...), delta)
	if parentID != "" {
		b = AppendString(append(b, `,"parent_id":`...), parentID)
	}
	return append(b, '}')
}

// AppendString appends s as a JSON string, invalid UTF-8 as U+FFFD. Unlike
// encoding/json it leaves <, > and & alone.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	if len(s) >= longText {
		b = slices.Grow(b, len(s)+len(s)/16+64) // once, not step by step
	}
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}
