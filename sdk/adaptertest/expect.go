package adaptertest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/google/go-cmp/cmp"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Expect is what a person says must come of a transcript. Fields left out are
// not compared; at least one must be there. It is the part of a test that -update
// cannot make agree with a mistake.
type Expect struct {
	// FinalText is the text of the last message of the main conversation that
	// has any: of its message_stop, else of its text_deltas.
	FinalText *string `json:"final_text"`
	// ToolIDs are the tool_call_ids of tool_call_start, in order.
	ToolIDs *[]string `json:"tool_ids"`
	// Outcome is the code of the last outcome: "" is success, "none" that there is
	// no outcome.
	Outcome      *string `json:"outcome"`
	Retryable    *bool   `json:"retryable"`
	RetryAfterMS *uint64 `json:"retry_after_ms"`
	// Message is a part of the outcome's message.
	Message *string `json:"message"`
	// Tokens are the sums of token_usage; null that it was never said.
	Tokens *struct {
		Input      *int64 `json:"input"`
		Output     *int64 `json:"output"`
		Thinking   *int64 `json:"thinking"`
		CacheRead  *int64 `json:"cache_read"`
		CacheWrite *int64 `json:"cache_write"`
	} `json:"tokens"`
	CostUSD *float64 `json:"cost_usd"` // the sum of cost events
	// ErrorCodes are those of the events "error", in order.
	ErrorCodes *[]string `json:"error_codes"`
	SessionID  *string   `json:"session_id"` // of the last session_start
	Turns      *int      `json:"turns"`      // how many turn_end
	// Writes are the lines written to stdin, in order. An object need not name all
	// fields; a string is compared with the line as text.
	Writes *[]any `json:"writes"`
	// EventTypes is the exact sequence.
	EventTypes *[]string `json:"event_types"`
	// Contains are types of events; there must be at least one of each.
	Contains []string `json:"contains"`
	Unparsed *int     `json:"unparsed"` // how many log events
	// StdinClosed says whether the adapter closed stdin.
	StdinClosed *bool `json:"stdin_closed"`
}

// facts are those of a run that Expect speaks of.
type facts struct {
	finalText   string
	toolIDs     []string
	outcome     *pb.Outcome
	tokens      map[string]*int64
	cost        float64
	errorCodes  []string
	sessionID   string
	turns       int
	writes      []string
	eventTypes  []string
	unparsed    int
	stdinClosed bool
}

func (r *result) facts() *facts {
	f := &facts{tokens: map[string]*int64{}}
	var text, stdin strings.Builder
	endText := func(whole string) {
		if whole == "" {
			whole = text.String()
		}
		if whole != "" {
			f.finalText = whole
		}
		text.Reset()
	}
	for _, output := range r.All {
		switch output.Kind {
		case pb.OutputKind_OUTPUT_WRITE:
			stdin.Write(output.Data)
		case pb.OutputKind_OUTPUT_CLOSE_STDIN:
			f.stdinClosed = true
		case pb.OutputKind_OUTPUT_OUTCOME:
			f.outcome = output.Outcome
		}
		if output.Kind != pb.OutputKind_OUTPUT_EVENT {
			continue
		}
		f.eventTypes = append(f.eventTypes, output.Type)
		var event struct {
			ParentID         string `json:"parent_id"`
			Delta            string `json:"delta"`
			Text             string `json:"text"`
			ToolCallID       string `json:"tool_call_id"`
			SessionID        string `json:"session_id"`
			Code             string `json:"code"`
			InputTokens      *int64 `json:"input_tokens"`
			OutputTokens     *int64 `json:"output_tokens"`
			ThinkingTokens   *int64 `json:"thinking_tokens"`
			CacheReadTokens  *int64 `json:"cache_read_tokens"`
			CacheWriteTokens *int64 `json:"cache_write_tokens"`
			Cost             struct {
				USD float64 `json:"usd"`
			} `json:"cost"`
		}
		json.Unmarshal(output.Data, &event) // check has reported what is no object
		switch output.Type {
		case code.EventMessageStart, code.EventTurnStart:
			if event.ParentID == "" {
				endText("")
			}
		case code.EventTextDelta:
			if event.ParentID == "" {
				text.WriteString(event.Delta)
			}
		case code.EventMessageStop:
			if event.ParentID == "" {
				endText(event.Text)
			}
		case code.EventToolCallStart:
			f.toolIDs = append(f.toolIDs, event.ToolCallID)
		case code.EventSessionStart:
			f.sessionID = event.SessionID
		case code.EventTurnEnd:
			f.turns++
		case code.EventCost:
			f.cost += event.Cost.USD
		case code.EventError:
			f.errorCodes = append(f.errorCodes, event.Code)
		case code.EventLog:
			f.unparsed++
		case code.EventTokenUsage:
			for name, n := range map[string]*int64{
				"input": event.InputTokens, "output": event.OutputTokens, "thinking": event.ThinkingTokens,
				"cache_read": event.CacheReadTokens, "cache_write": event.CacheWriteTokens,
			} {
				if n == nil {
					continue
				}
				if f.tokens[name] == nil {
					f.tokens[name] = new(int64)
				}
				*f.tokens[name] += *n
			}
		}
	}
	endText("")
	for line := range strings.SplitSeq(stdin.String(), "\n") {
		if line != "" {
			f.writes = append(f.writes, line)
		}
	}
	return f
}

// compare returns what differs.
func (e *Expect) compare(f *facts) []string {
	var problems []string
	compared := false
	differ := func(name string, want, got any) {
		compared = true
		if diff := cmp.Diff(want, got); diff != "" {
			problems = append(problems, fmt.Sprintf("%s (-want +got):\n%s", name, diff))
		}
	}
	list := func(name string, want *[]string, got []string) {
		if want != nil {
			differ(name, append([]string{}, *want...), append([]string{}, got...))
		}
	}
	if e.FinalText != nil {
		differ("final_text", *e.FinalText, f.finalText)
	}
	list("tool_ids", e.ToolIDs, f.toolIDs)
	list("error_codes", e.ErrorCodes, f.errorCodes)
	list("event_types", e.EventTypes, f.eventTypes)
	if e.Outcome != nil {
		got := "none"
		if f.outcome != nil {
			got = f.outcome.Code
		}
		differ("outcome", *e.Outcome, got)
	}
	if e.Retryable != nil {
		differ("retryable", *e.Retryable, f.outcome.GetRetryable())
	}
	if e.RetryAfterMS != nil {
		differ("retry_after_ms", *e.RetryAfterMS, f.outcome.GetRetryAfterMs())
	}
	if e.Message != nil {
		compared = true
		if !strings.Contains(f.outcome.GetMessage(), *e.Message) {
			problems = append(problems, fmt.Sprintf("message: want %q in %q", *e.Message, f.outcome.GetMessage()))
		}
	}
	if e.Tokens != nil {
		want := map[string]*int64{}
		for name, n := range map[string]*int64{
			"input": e.Tokens.Input, "output": e.Tokens.Output, "thinking": e.Tokens.Thinking,
			"cache_read": e.Tokens.CacheRead, "cache_write": e.Tokens.CacheWrite,
		} {
			if n != nil {
				want[name] = n
			}
		}
		// Thinking tokens are part of the output's; most agents do not say them, and
		// most expectations need not.
		if e.Tokens.Thinking == nil {
			delete(f.tokens, "thinking")
		}
		differ("tokens", want, f.tokens)
	}
	if e.CostUSD != nil {
		compared = true
		if math.Abs(*e.CostUSD-f.cost) > 1e-9 {
			problems = append(problems, fmt.Sprintf("cost_usd: want %v, got %v", *e.CostUSD, f.cost))
		}
	}
	if e.SessionID != nil {
		differ("session_id", *e.SessionID, f.sessionID)
	}
	if e.Turns != nil {
		differ("turns", *e.Turns, f.turns)
	}
	if e.Unparsed != nil {
		differ("unparsed", *e.Unparsed, f.unparsed)
	}
	if e.StdinClosed != nil {
		differ("stdin_closed", *e.StdinClosed, f.stdinClosed)
	}
	for _, name := range e.Contains {
		compared = true
		if !strings.Contains("\n"+strings.Join(f.eventTypes, "\n")+"\n", "\n"+name+"\n") {
			problems = append(problems, fmt.Sprintf("contains: there is no event %s", name))
		}
	}
	if e.Writes != nil {
		compared = true
		if len(*e.Writes) != len(f.writes) {
			problems = append(problems, fmt.Sprintf("writes: want %d lines, got %d:\n%s", len(*e.Writes), len(f.writes), strings.Join(f.writes, "\n")))
		}
		for i := range min(len(*e.Writes), len(f.writes)) {
			if !matchLine((*e.Writes)[i], f.writes[i]) {
				want, _ := json.Marshal((*e.Writes)[i])
				problems = append(problems, fmt.Sprintf("writes[%d]: want\n%s\ngot\n%s", i, want, f.writes[i]))
			}
		}
	}
	if !compared {
		problems = append(problems, "it expects nothing")
	}
	return problems
}

func matchLine(want any, line string) bool {
	if text, ok := want.(string); ok && text == line {
		return true
	}
	var got any
	return json.Unmarshal([]byte(line), &got) == nil && matches(want, got)
}

// matches reports whether got has all that want has.
func matches(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			field, ok := object[key]
			if !ok || !matches(value, field) {
				return false
			}
		}
		return true
	case []any:
		array, ok := got.([]any)
		if !ok || len(array) != len(want) {
			return false
		}
		for i := range want {
			if !matches(want[i], array[i]) {
				return false
			}
		}
		return true
	}
	return want == got
}
