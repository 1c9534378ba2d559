package fakemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// AnthropicRequest is the body of POST /v1/messages as far as tests ask for it.
type AnthropicRequest struct {
	Model        string             `json:"model"`
	MaxTokens    int                `json:"max_tokens"`
	Stream       bool               `json:"stream"`
	System       AnthropicContent   `json:"system"`
	Messages     []AnthropicMessage `json:"messages"`
	Tools        []AnthropicTool    `json:"tools"`
	OutputConfig struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
}

// AnthropicMessage is one message of a request.
type AnthropicMessage struct {
	Role    string           `json:"role"`
	Content AnthropicContent `json:"content"`
}

// AnthropicContent is a list of blocks; a plain string is one text block.
type AnthropicContent []AnthropicBlock

// AnthropicBlock is one block of content.
type AnthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	ToolUseID string           `json:"tool_use_id"`
	IsError   bool             `json:"is_error"`
	Content   AnthropicContent `json:"content"` // of a tool_result
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"` // of an image or document
}

// AnthropicTool is one tool that the agent offers.
type AnthropicTool struct {
	Name        string         `json:"name"`
	InputSchema map[string]any `json:"input_schema"`
}

// UnmarshalJSON reads a string, a list of blocks, or null.
func (c *AnthropicContent) UnmarshalJSON(data []byte) error {
	parts, err := textOrParts(data, func(text string) AnthropicBlock { return AnthropicBlock{Type: "text", Text: text} })
	*c = parts
	return err
}

// Texts returns the text blocks.
func (c AnthropicContent) Texts() []string {
	var texts []string
	for _, block := range c {
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return texts
}

// Anthropic reads the request's body as one of the Messages API.
func (r Request) Anthropic() (AnthropicRequest, error) {
	var body AnthropicRequest
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return body, fmt.Errorf("request %d is not of the Messages API: %w", r.N, err)
	}
	return body, nil
}

// turn finds the newest prompt: the last user message with a marker, or with text
// and no tool result.
func (body *AnthropicRequest) turn() *Turn {
	t := &Turn{}
	for _, tool := range body.Tools {
		t.Tools = append(t.Tools, tool.Name)
		if tool.Name == structuredTool {
			t.Schema = tool.InputSchema
		}
	}
	for i := len(body.Messages) - 1; i >= 0; i-- {
		message := body.Messages[i]
		if message.Role == "assistant" {
			t.Round++
		}
		if message.Role != "user" {
			continue
		}
		text, results := "", false
		for _, block := range message.Content {
			results = results || block.Type == "tool_result"
			if block.Type == "text" {
				text += promptText(block.Text)
			}
		}
		if markerPattern.MatchString(text) || text != "" && !results {
			t.Prompt = text
			return t
		}
	}
	return t
}

func (s *Server) routeAnthropic(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/messages", s.serveMessages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody))
		s.note(r, body, http.StatusOK)
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": InputTokens + CacheReadTokens + CacheWriteTokens})
	})
}

func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	kept := s.note(r, data, 0)
	var body AnthropicRequest
	t, reply := s.reply(data, &body, &body.Model)
	status := reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	s.update(func() { kept.Script, kept.Arg, kept.Round, kept.Status = t.Script, t.Arg, t.Round, status })

	w.Header().Set("request-id", s.id("req"))
	if reply.Status != 0 {
		if reply.RetryAfter > 0 {
			w.Header().Set("retry-after", strconv.Itoa(reply.RetryAfter))
		}
		writeJSON(w, reply.Status, map[string]any{
			"type": "error", "error": map[string]any{"type": reply.Kind, "message": reply.Message}})
		return
	}
	if reply.Drop && (len(reply.Text) == 0 || !body.Stream) {
		drop(w)
		return
	}
	m := s.newMessage(&body, t, reply)
	if !body.Stream {
		writeJSON(w, http.StatusOK, m.whole())
		return
	}
	if err := m.stream(r.Context(), w); err != nil {
		s.update(func() { kept.Broken = true })
	}
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

// message is a reply in the words of the Messages API.
type message struct {
	id, model string
	reply     Reply
	tools     []toolUse
}

type toolUse struct {
	id, name string
	input    map[string]any
}

func (s *Server) newMessage(body *AnthropicRequest, t *Turn, reply Reply) *message {
	m := &message{id: s.id("msg"), model: body.Model, reply: reply}
	for _, call := range reply.Calls {
		name, input := call.native(t.Tools)
		m.tools = append(m.tools, toolUse{s.id("toolu"), name, input})
	}
	return m
}

func (m *message) stopReason() string {
	if m.reply.Refused {
		return "refusal"
	}
	if len(m.tools) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func (m *message) usage(output int) map[string]any {
	usage := map[string]any{
		"input_tokens": InputTokens, "cache_read_input_tokens": CacheReadTokens,
		"cache_creation_input_tokens": CacheWriteTokens, "output_tokens": output,
	}
	if m.reply.Thinking != "" && output == OutputTokens {
		usage["output_tokens_details"] = map[string]any{"thinking_tokens": ThinkingTokens}
	}
	return usage
}

func (m *message) head(content []any, stop any, output int) map[string]any {
	return map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": m.usage(output),
	}
}

// whole is the reply to a request that did not ask for a stream.
func (m *message) whole() map[string]any {
	content := []any{}
	if m.reply.Thinking != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": m.reply.Thinking, "signature": "fm"})
	}
	if len(m.reply.Text) > 0 {
		text := ""
		for _, delta := range m.reply.Text {
			text += delta
		}
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	for _, use := range m.tools {
		content = append(content, map[string]any{"type": "tool_use", "id": use.id, "name": use.name, "input": use.input})
	}
	return m.head(content, m.stopReason(), OutputTokens)
}

// stream writes the reply as server-sent events; an error means that the agent
// has left.
func (m *message) stream(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := &sse{ctx: ctx, w: w}
	out.send("message_start", map[string]any{"message": m.head([]any{}, nil, 1)})
	out.send("ping", map[string]any{})
	index := 0
	block := func(start map[string]any, pause time.Duration, deltas ...map[string]any) {
		out.send("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, delta := range deltas {
			out.wait(pause)
			out.send("content_block_delta", map[string]any{"index": index, "delta": delta})
		}
		if m.reply.Reset == "text" && start["type"] == "text" || m.reply.Reset == "call" && start["type"] == "tool_use" {
			out.reset()
		}
		if m.reply.Hang && start["type"] == "text" {
			out.wait(time.Hour)
		}
		if m.reply.Drop && start["type"] == "text" {
			out.drop()
		}
		out.send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if text := m.reply.Thinking; text != "" {
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, 0,
			map[string]any{"type": "thinking_delta", "thinking": text[:len(text)/2]},
			map[string]any{"type": "thinking_delta", "thinking": text[len(text)/2:]},
			map[string]any{"type": "signature_delta", "signature": "fm"})
	}
	if len(m.reply.Text) > 0 {
		var deltas []map[string]any
		for _, text := range m.reply.Text {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": text})
		}
		block(map[string]any{"type": "text", "text": ""}, m.reply.Every, deltas...)
	}
	for _, use := range m.tools {
		input, _ := json.Marshal(use.input)
		block(map[string]any{"type": "tool_use", "id": use.id, "name": use.name, "input": map[string]any{}}, 0,
			map[string]any{"type": "input_json_delta", "partial_json": string(input[:len(input)/2])},
			map[string]any{"type": "input_json_delta", "partial_json": string(input[len(input)/2:])})
	}
	out.send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": m.stopReason(), "stop_sequence": nil}, "usage": m.usage(OutputTokens)})
	out.send("message_stop", map[string]any{})
	return out.err
}
