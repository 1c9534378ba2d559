package acpagent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/pluginapi"
)

func TestTranslator(t *testing.T) {
	t.Parallel()
	number := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		name   string
		events []pluginapi.Payload
		want   string // one line of JSON each
	}{
		{"text in pieces, and whole", []pluginapi.Payload{
			pluginapi.TextDelta{Delta: "a"}, pluginapi.MessageStop{Text: "a"}, pluginapi.MessageStop{Text: "b"},
			pluginapi.TextDelta{Delta: "c", Nested: pluginapi.Nested{ParentID: "x"}}, pluginapi.ThinkingStop{Thinking: "d"},
		}, `{"content":{"text":"a","type":"text"},"sessionUpdate":"agent_message_chunk"}
{"content":{"text":"b","type":"text"},"sessionUpdate":"agent_message_chunk"}
{"content":{"text":"d","type":"text"},"sessionUpdate":"agent_thought_chunk"}`},
		{"an edit", []pluginapi.Payload{
			pluginapi.ToolCallStart{ToolCallID: "1", ToolName: "Edit"},
			pluginapi.ToolCallReady{ToolCallID: "1", ToolName: "Edit", Input: json.RawMessage(`{"file_path":"/a","old_string":"x","new_string":"y"}`)},
			pluginapi.ToolResult{ToolCallID: "1", ToolName: "Edit", Output: json.RawMessage(`"done"`)},
		}, `{"kind":"edit","sessionUpdate":"tool_call","status":"pending","title":"Edit","toolCallId":"1"}
{"content":[{"newText":"y","oldText":"x","path":"/a","type":"diff"}],"kind":"edit","locations":[{"path":"/a"}],"rawInput":{"file_path":"/a","new_string":"y","old_string":"x"},"sessionUpdate":"tool_call_update","status":"in_progress","title":"Edit /a","toolCallId":"1"}
{"content":[{"content":{"text":"done","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"1"}`},
		{"a call without a start that fails", []pluginapi.Payload{
			pluginapi.ToolCallReady{ToolCallID: "2", ToolName: "Bash", Input: json.RawMessage(`{"command":"false"}`)},
			pluginapi.ToolError{ToolCallID: "2", ToolName: "Bash", Error: "exit 1"},
		}, `{"kind":"execute","sessionUpdate":"tool_call","status":"pending","title":"Bash","toolCallId":"2"}
{"kind":"execute","rawInput":{"command":"false"},"sessionUpdate":"tool_call_update","status":"in_progress","title":"Bash false","toolCallId":"2"}
{"content":[{"content":{"text":"exit 1","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"2"}`},
		{"a plan, commands at once, a title, the context", []pluginapi.Payload{
			pluginapi.SkillLoaded{SkillName: "/a", Source: "command"}, pluginapi.SkillLoaded{SkillName: "b", Source: "command"}, pluginapi.SkillLoaded{SkillName: "no"},
			pluginapi.TodoUpdate{Items: []pluginapi.TodoItem{{Text: "x", Status: "completed"}, {Text: "y", Status: "strange"}}},
			pluginapi.SessionTitle{Title: "T"}, pluginapi.ContextLimitWarning{UsedTokens: number(9), MaxTokens: number(10)}, pluginapi.ContextLimitWarning{},
		}, `{"availableCommands":[{"description":"/a","name":"a"},{"description":"b","name":"b"}],"sessionUpdate":"available_commands_update"}
{"entries":[{"content":"x","priority":"medium","status":"completed"},{"content":"y","priority":"medium","status":"pending"}],"sessionUpdate":"plan"}
{"sessionUpdate":"session_info_update","title":"T"}
{"sessionUpdate":"usage_update","size":10,"used":9}`},
		{"what is no part of the conversation", []pluginapi.Payload{
			pluginapi.RateLimited{RetryAfterMS: number(1500)}, pluginapi.Retry{Attempt: 2, Reason: "overloaded"},
			pluginapi.ContextCompacted{Summary: "short"}, pluginapi.ContextCompacted{}, pluginapi.ApprovalsChanged{Approve: "auto"},
		}, `{"sessionUpdate":"notice","severity":"warning","title":"Rate limited, goes on in 1.5s"}
{"description":"overloaded","sessionUpdate":"notice","severity":"warning","title":"Try 2"}
{"compactionId":"compaction-3","sessionUpdate":"compaction_update","status":"completed","summary":[{"text":"short","type":"text"}]}
{"compactionId":"compaction-4","sessionUpdate":"compaction_update","status":"completed"}
{"currentModeId":"auto","sessionUpdate":"current_mode_update"}`},
	} {
		var to translator
		var got []string
		for n, e := range test.events {
			to.seq = uint64(n + 1)
			for _, u := range to.updates(e) {
				var fields map[string]any // sorted
				data, err := json.Marshal(u)
				if err == nil {
					err = json.Unmarshal(data, &fields)
				}
				if err != nil {
					t.Fatal(err)
				}
				data, _ = json.Marshal(fields)
				got = append(got, string(data))
			}
		}
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, text, test.want)
		}
	}
}

func TestHowATurnEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		events []pluginapi.Payload
		reason acp.StopReason
		code   pluginapi.Code
	}{
		{nil, acp.StopReasonEndTurn, ""},
		{[]pluginapi.Payload{pluginapi.Interrupted{}}, acp.StopReasonCancelled, ""},
		{[]pluginapi.Payload{pluginapi.TurnLimit{}}, acp.StopReasonMaxTurnRequests, ""},
		{[]pluginapi.Payload{pluginapi.ErrorEvent{Code: pluginapi.CodeNetwork, Recoverable: true}}, acp.StopReasonEndTurn, ""},
		{[]pluginapi.Payload{pluginapi.AuthError{Message: "sign in"}, pluginapi.RunEnd{Code: pluginapi.CodeAgentFailed}}, "", pluginapi.CodeAuth},
		{[]pluginapi.Payload{pluginapi.RunEnd{Code: pluginapi.CodeAgentCrash}}, "", pluginapi.CodeAgentCrash},
		{[]pluginapi.Payload{pluginapi.Interrupted{}, pluginapi.UserMessage{Text: "x"}}, acp.StopReasonEndTurn, ""},
	} {
		var to translator
		for _, e := range test.events {
			to.updates(e)
		}
		reason, err := to.turnEnds()
		if reason != test.reason || (err != nil) != (test.code != "") || err != nil && pluginapi.AsError(err).Code != test.code {
			t.Errorf("%v: %s, %v", test.events, reason, err)
		}
		if again, err := to.turnEnds(); again != acp.StopReasonEndTurn || err != nil {
			t.Errorf("%v: the next turn ends with %s, %v", test.events, again, err)
		}
	}
}
