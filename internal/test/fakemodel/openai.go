package fakemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OpenAIRequest is the body of POST /v1/responses as far as tests ask for it.
type OpenAIRequest struct {
	Model        string       `json:"model"`
	Stream       bool         `json:"stream"`
	Instructions string       `json:"instructions"`
	Input        OpenAIInput  `json:"input"`
	Tools        []OpenAITool `json:"tools"`
	Reasoning    struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`
	Text struct {
		Format struct {
			Type   string         `json:"type"`
			Schema map[string]any `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

// OpenAIInput is the conversation; a plain string is one message of the user.
type OpenAIInput []OpenAIItem

// OpenAIItem is one item of the input: a message, a call of a tool, its output,
// or a piece of reasoning.
type OpenAIItem struct {
	Type    string        `json:"type"` // empty means message
	Role    string        `json:"role"`
	Content OpenAIContent `json:"content"`
	CallID  string        `json:"call_id"`
	Name    string        `json:"name"`
	Output  OpenAIContent `json:"output"` // of a function_call_output
	Tools   []OpenAITool  `json:"tools"`  // of additional_tools
}

// OpenAIContent is a list of parts; a plain string is one part of text.
type OpenAIContent []OpenAIPart

// OpenAIPart is one part of content.
type OpenAIPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"` // a data URL
	// Encrypted is what the provider alone can read; this one writes it as it is.
	Encrypted string `json:"encrypted_content"`
}

// OpenAITool is one tool that the agent offers, or a group of them under a name.
type OpenAITool struct {
	Type  string       `json:"type"` // function, custom, namespace, web_search
	Name  string       `json:"name"`
	Tools []OpenAITool `json:"tools"` // of a namespace
}

// UnmarshalJSON reads a string, a list of items, or null.
func (in *OpenAIInput) UnmarshalJSON(data []byte) error {
	*in = nil
	if len(data) > 0 && data[0] == '"' {
		var content OpenAIContent
		err := json.Unmarshal(data, &content)
		*in = OpenAIInput{{Role: "user", Content: content}}
		return err
	}
	var items []OpenAIItem
	err := json.Unmarshal(data, &items)
	*in = items
	return err
}

// UnmarshalJSON reads a string, a list of parts, or null.
func (c *OpenAIContent) UnmarshalJSON(data []byte) error {
	parts, err := textOrParts(data, func(text string) OpenAIPart { return OpenAIPart{Type: "input_text", Text: text} })
	*c = parts
	return err
}

// Texts returns the parts that are text.
func (c OpenAIContent) Texts() []string {
	var texts []string
	for _, part := range c {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return texts
}

// OpenAI reads the request's body as one of the Responses API.
func (r Request) OpenAI() (OpenAIRequest, error) {
	var body OpenAIRequest
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return body, fmt.Errorf("request %d is not of the Responses API: %w", r.N, err)
	}
	return body, nil
}

// tools are those of the request and those that its input adds.
func (body *OpenAIRequest) tools() []OpenAITool {
	all := slices.Clone(body.Tools)
	for _, item := range body.Input {
		all = append(all, item.Tools...)
	}
	return all
}

// ToolNames lists the tools; those of a namespace as NAMESPACE.NAME.
func (body *OpenAIRequest) ToolNames() []string {
	var names []string
	for _, tool := range body.tools() {
		switch {
		case len(tool.Tools) > 0:
			for _, inner := range tool.Tools {
				names = append(names, tool.Name+"."+inner.Name)
			}
		case tool.Name != "":
			names = append(names, tool.Name)
		default:
			names = append(names, tool.Type)
		}
	}
	return names
}

// custom reports whether a tool takes plain text as its input.
func (body *OpenAIRequest) custom(name string) bool {
	for _, tool := range body.tools() {
		if tool.Name == name {
			return tool.Type == "custom"
		}
	}
	return false
}

// turn finds the newest prompt: the last message of the user that is not the
// agent's own note. A round is one reply of the model, however many items it has.
func (body *OpenAIRequest) turn() *Turn {
	t := &Turn{Tools: body.ToolNames()}
	if body.Text.Format.Type == "json_schema" {
		t.Schema = body.Text.Format.Schema
	}
	replied := false
	for i := len(body.Input) - 1; i >= 0; i-- {
		item := body.Input[i]
		ours := item.Role == "assistant" || item.Type == "function_call" || item.Type == "custom_tool_call" || item.Type == "reasoning"
		if replied && !ours {
			t.Round++
		}
		replied = ours
		text := ""
		switch {
		case item.Role == "user":
			for _, part := range item.Content.Texts() {
				text += openAIPrompt(part)
			}
		case item.Type == "agent_message":
			// What an agent asks its sub-agent; other messages have no such part.
			for _, part := range item.Content {
				text += part.Encrypted
			}
		}
		if text != "" {
			t.Prompt = text
			return t
		}
	}
	return t
}

// openAIPrompt takes the notes of Codex out of a user message: each is one
// element, or the heading of a file of instructions.
func openAIPrompt(text string) string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "<") && strings.HasSuffix(trimmed, ">") || strings.HasPrefix(trimmed, "# AGENTS.md") {
		return ""
	}
	return trimmed
}

func (s *Server) routeOpenAI(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/responses", s.serveResponses)
}

func (s *Server) serveResponses(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	kept := s.note(r, data, 0)
	var body OpenAIRequest
	t, reply := s.reply(data, &body, &body.Model)
	status, code := openAIFailure(reply)
	s.update(func() { kept.Script, kept.Arg, kept.Round, kept.Status = t.Script, t.Arg, t.Round, status })
	w.Header().Set("x-request-id", s.id("req"))
	if status != http.StatusOK {
		if reply.RetryAfter > 0 {
			w.Header().Set("retry-after", strconv.Itoa(reply.RetryAfter))
		}
		writeJSON(w, status, map[string]any{"error": map[string]any{
			"message": openAIMessage(reply), "type": reply.Kind, "code": code, "param": nil}})
		return
	}
	if reply.Drop && (len(reply.Text) == 0 || !body.Stream) {
		drop(w)
		return
	}
	m := s.newResponse(&body, t, reply)
	if reply.Status != 0 {
		m.failure = map[string]any{"code": code, "message": reply.Message}
	}
	if !body.Stream {
		writeJSON(w, http.StatusOK, m.whole())
		return
	}
	if err := m.stream(r.Context(), w); err != nil {
		s.update(func() { kept.Broken = true })
	}
}

// Where Codex is in code mode, its model calls tools from JavaScript.
const (
	codeNamespace = "functions"
	codeTool      = codeNamespace + ".exec"
)

// script is a call of a tool in code mode.
func script(name string, input map[string]any) string {
	var argument any = input
	if text, ok := input["input"]; ok && len(input) == 1 {
		argument = text
	}
	data, _ := json.Marshal(argument)
	return fmt.Sprintf("const result = await tools.%s(%s);\ntext(result);", strings.ReplaceAll(name, ".", "__"), data)
}

// openAIFailure puts an error of a script into the words of this API: its status
// and code. 200 means that the failure is told inside the stream.
func openAIFailure(reply Reply) (status int, code any) {
	switch {
	case reply.Status == 0:
		return http.StatusOK, nil
	case reply.Message == ContextMessage:
		return http.StatusOK, "context_length_exceeded"
	case reply.Message == CreditMessage:
		return http.StatusOK, "insufficient_quota"
	case reply.Message == QuotaMessage:
		return reply.Status, "insufficient_quota"
	case reply.Status == http.StatusNotFound:
		return reply.Status, "model_not_found"
	case reply.Status == http.StatusUnauthorized:
		return reply.Status, "invalid_api_key"
	case reply.Status == http.StatusTooManyRequests:
		return reply.Status, "rate_limit_exceeded"
	case reply.Status == statusOverloaded:
		return http.StatusServiceUnavailable, "server_is_overloaded"
	}
	return reply.Status, nil
}

// openAIMessage is what OpenAI's APIs say of an error.
func openAIMessage(reply Reply) string {
	if name, ok := strings.CutPrefix(reply.Message, "model: "); ok && reply.Status == http.StatusNotFound {
		return "The model `" + name + "` does not exist or you do not have access to it."
	}
	return reply.Message
}

// response is a reply in the words of the Responses API.
type response struct {
	id, model string
	reply     Reply
	items     []responseItem
	failure   map[string]any
}

// responseItem is one item of the output, and the deltas that make it.
type responseItem struct {
	body   map[string]any
	event  string // of a delta
	deltas []string
	pause  time.Duration
}

func (s *Server) newResponse(body *OpenAIRequest, t *Turn, reply Reply) *response {
	m := &response{id: s.id("resp"), model: body.Model, reply: reply}
	if reply.Thinking != "" {
		half := len(reply.Thinking) / 2
		m.items = append(m.items, responseItem{
			body: map[string]any{"type": "reasoning", "id": s.id("rs"), "encrypted_content": nil,
				"summary": []any{map[string]any{"type": "summary_text", "text": reply.Thinking}}},
			event:  "response.reasoning_summary_text.delta",
			deltas: []string{reply.Thinking[:half], reply.Thinking[half:]},
		})
	}
	text, calls := reply.Text, []Call(nil)
	for _, call := range reply.Calls {
		// What another API fills into a tool is the answer itself here.
		if call.Kind == "structured" {
			value, _ := json.Marshal(call.Args["value"])
			text = []string{string(value)}
			continue
		}
		calls = append(calls, call)
	}
	if len(text) > 0 {
		m.items = append(m.items, responseItem{
			body: map[string]any{"type": "message", "id": s.id("msg"), "role": "assistant", "status": "completed",
				"content": []any{map[string]any{"type": "output_text", "text": strings.Join(text, ""), "annotations": []any{}}}},
			event: "response.output_text.delta", deltas: text, pause: reply.Every,
		})
	}
	for _, call := range calls {
		name, input := call.native(t.Tools)
		item := map[string]any{"call_id": s.id("call"), "status": "completed"}
		if slices.Contains(t.Tools, codeTool) && !slices.Contains(t.Tools, name) {
			name, input = codeTool, map[string]any{"input": script(name, input)}
		}
		if namespace, inner, ok := strings.Cut(name, "."); ok {
			item["namespace"], name = namespace, inner
		}
		item["name"] = name
		if body.custom(name) || item["namespace"] == codeNamespace {
			item["type"], item["id"], item["input"] = "custom_tool_call", s.id("ctc"), input["input"]
		} else {
			arguments, _ := json.Marshal(input)
			item["type"], item["id"], item["arguments"] = "function_call", s.id("fc"), string(arguments)
		}
		m.items = append(m.items, responseItem{body: item})
	}
	return m
}

func (m *response) usage() map[string]any {
	thinking := 0
	if m.reply.Thinking != "" {
		thinking = ThinkingTokens
	}
	const input = InputTokens + CacheReadTokens + CacheWriteTokens
	return map[string]any{
		"input_tokens":          input,
		"input_tokens_details":  map[string]any{"cached_tokens": CacheReadTokens, "cache_write_tokens": CacheWriteTokens},
		"output_tokens":         OutputTokens,
		"output_tokens_details": map[string]any{"reasoning_tokens": thinking},
		"total_tokens":          input + OutputTokens,
	}
}

func (m *response) head(status string, output []any) map[string]any {
	return map[string]any{"id": m.id, "object": "response", "model": m.model, "status": status, "output": output, "error": nil}
}

// whole is the reply to a request that did not ask for a stream.
func (m *response) whole() map[string]any {
	output := []any{}
	for _, item := range m.items {
		output = append(output, item.body)
	}
	whole := m.head("completed", output)
	whole["usage"] = m.usage()
	if m.reply.Refused {
		whole["status"], whole["incomplete_details"] = "incomplete", map[string]any{"reason": "content_filter"}
	}
	if m.failure != nil {
		whole["status"], whole["error"] = "failed", m.failure
	}
	return whole
}

// stream writes the reply as server-sent events; an error means that the agent
// has left.
func (m *response) stream(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := &sse{ctx: ctx, w: w}
	out.send("response.created", map[string]any{"response": m.head("in_progress", []any{})})
	if m.failure != nil {
		out.send("response.failed", map[string]any{"response": m.whole()})
		return out.err
	}
	for index, item := range m.items {
		out.send("response.output_item.added", map[string]any{"output_index": index, "item": item.begun()})
		if strings.Contains(item.event, "summary") {
			out.send("response.reasoning_summary_part.added", map[string]any{
				"item_id": item.body["id"], "output_index": index, "summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}})
		}
		for _, delta := range item.deltas {
			out.wait(item.pause)
			out.send(item.event, map[string]any{"item_id": item.body["id"], "output_index": index,
				"content_index": 0, "summary_index": 0, "delta": delta})
		}
		if called := item.body["type"] != "message" && item.body["type"] != "reasoning"; m.reply.Reset == "call" && called ||
			m.reply.Reset == "text" && item.body["type"] == "message" {
			out.reset()
		}
		if m.reply.Hang && item.body["type"] == "message" {
			out.wait(time.Hour)
		}
		if m.reply.Drop {
			out.drop()
		}
		out.send("response.output_item.done", map[string]any{"output_index": index, "item": item.body})
	}
	if m.reply.Refused {
		out.send("response.incomplete", map[string]any{"response": m.whole()})
		return out.err
	}
	out.send("response.completed", map[string]any{"response": m.whole()})
	return out.err
}

// begun is the item before its first delta.
func (i responseItem) begun() map[string]any {
	begun := map[string]any{}
	for key, value := range i.body {
		switch key {
		case "content", "summary":
			value = []any{}
		case "arguments", "input":
			value = ""
		case "status":
			value = "in_progress"
		}
		begun[key] = value
	}
	return begun
}
