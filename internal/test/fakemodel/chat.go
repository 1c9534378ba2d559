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

// ChatRequest is the body of POST /v1/chat/completions as far as tests ask for it.
type ChatRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	// Effort stands in one of two places.
	ReasoningEffort string `json:"reasoning_effort"`
	Reasoning       struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Messages      []ChatMessage `json:"messages"`
	Tools         []ChatTool    `json:"tools"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Effort is the effort that was asked for.
func (body *ChatRequest) Effort() string { return body.ReasoningEffort + body.Reasoning.Effort }

// ChatMessage is one message of a request.
type ChatMessage struct {
	Role       string      `json:"role"`
	Content    ChatContent `json:"content"`
	ToolCallID string      `json:"tool_call_id"`
}

// ChatContent is a list of parts; a plain string is one text part.
type ChatContent []ChatPart

// ChatPart is one part of a message.
type ChatPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// ChatTool is one tool that the agent offers.
type ChatTool struct {
	Function struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters"`
	} `json:"function"`
}

// UnmarshalJSON reads a string, a list of parts, or null.
func (c *ChatContent) UnmarshalJSON(data []byte) error {
	parts, err := textOrParts(data, func(text string) ChatPart { return ChatPart{Type: "text", Text: text} })
	*c = parts
	return err
}

// textOrParts reads a string as one part, a list of parts, or null.
func textOrParts[P any](data []byte, part func(text string) P) ([]P, error) {
	if len(data) > 0 && data[0] == '"' {
		var text string
		err := json.Unmarshal(data, &text)
		return []P{part(text)}, err
	}
	var parts []P
	err := json.Unmarshal(data, &parts)
	return parts, err
}

// Texts returns the text parts.
func (c ChatContent) Texts() []string {
	var texts []string
	for _, part := range c {
		if part.Type == "text" {
			texts = append(texts, part.Text)
		}
	}
	return texts
}

// Chat reads the request's body as one of the chat completions API.
func (r Request) Chat() (ChatRequest, error) {
	var body ChatRequest
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return body, fmt.Errorf("request %d is not of the chat completions API: %w", r.N, err)
	}
	return body, nil
}

// turn finds the newest prompt: the last user message with a marker, or with any
// text.
func (body *ChatRequest) turn() *Turn {
	t := &Turn{}
	for _, tool := range body.Tools {
		t.Tools = append(t.Tools, tool.Function.Name)
		if isStructured(tool.Function.Name) {
			t.Schema = tool.Function.Parameters
		}
	}
	newest, round := "", 0
	for i := len(body.Messages) - 1; i >= 0; i-- {
		message := body.Messages[i]
		if message.Role == "assistant" {
			t.Round++
		}
		if message.Role != "user" {
			continue
		}
		text := ""
		for _, part := range message.Content.Texts() {
			text += promptText(part)
		}
		if markerPattern.MatchString(text) {
			t.Prompt = text
			return t
		}
		if newest == "" && text != "" {
			newest, round = text, t.Round
		}
		// An agent's own note between a tool and the next request is no prompt; one
		// that follows an answer is.
		if newest != "" && i > 0 && body.Messages[i-1].Role == "assistant" {
			break
		}
	}
	t.Prompt, t.Round = newest, round
	return t
}

func (s *Server) routeChat(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/chat/completions", s.serveChat)
}

func (s *Server) serveChat(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	kept := s.note(r, data, 0)
	var body ChatRequest
	t, reply := s.reply(data, &body, &body.Model)
	status := reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	s.update(func() { kept.Script, kept.Arg, kept.Round, kept.Status = t.Script, t.Arg, t.Round, status })
	if reply.Status != 0 {
		if reply.RetryAfter > 0 {
			w.Header().Set("retry-after", strconv.Itoa(reply.RetryAfter))
		}
		writeJSON(w, reply.Status, map[string]any{"error": map[string]any{
			"message": openAIMessage(reply), "type": reply.Kind, "param": nil, "code": chatErrorCode(reply)}})
		return
	}
	if reply.Drop && (len(reply.Text) == 0 || !body.Stream) {
		drop(w)
		return
	}
	c := s.newCompletion(&body, t, reply)
	if !body.Stream {
		writeJSON(w, http.StatusOK, c.whole())
		return
	}
	if err := c.stream(r.Context(), w, body.StreamOptions.IncludeUsage); err != nil {
		s.update(func() { kept.Broken = true })
	}
}

// chatErrorCode is what this API calls the errors that it names.
func chatErrorCode(reply Reply) any {
	switch {
	case reply.Message == ContextMessage:
		return "context_length_exceeded"
	case reply.Message == CreditMessage, reply.Message == QuotaMessage:
		return "insufficient_quota"
	case reply.Status == http.StatusNotFound:
		return "model_not_found"
	case reply.Status == http.StatusUnauthorized:
		return "invalid_api_key"
	case reply.Status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	}
	return nil
}

// completion is a reply in the words of the chat completions API.
type completion struct {
	id, model string
	created   int64
	reply     Reply
	calls     []map[string]any
}

func (s *Server) newCompletion(body *ChatRequest, t *Turn, reply Reply) *completion {
	c := &completion{id: s.id("chatcmpl"), model: body.Model, created: time.Now().Unix(), reply: reply}
	for _, call := range reply.Calls {
		name, input := call.native(t.Tools)
		arguments, _ := json.Marshal(input)
		c.calls = append(c.calls, map[string]any{
			"id": s.id("call"), "type": "function", "function": map[string]any{"name": name, "arguments": string(arguments)}})
	}
	return c
}

func (c *completion) finish() string {
	if c.reply.Refused {
		return "content_filter"
	}
	if len(c.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// usage is the cost of a reply. This API counts cached tokens as part of the
// prompt's, and has no cache writes.
func (c *completion) usage() map[string]any {
	usage := map[string]any{
		"prompt_tokens": InputTokens + CacheReadTokens, "completion_tokens": OutputTokens,
		"total_tokens":          InputTokens + CacheReadTokens + OutputTokens,
		"prompt_tokens_details": map[string]any{"cached_tokens": CacheReadTokens},
	}
	if c.reply.Thinking != "" {
		usage["completion_tokens_details"] = map[string]any{"reasoning_tokens": ThinkingTokens}
	}
	return usage
}

func (c *completion) head(object string, choice map[string]any) map[string]any {
	choice["index"] = 0
	return map[string]any{"id": c.id, "object": object, "created": c.created, "model": c.model, "choices": []any{choice}}
}

// whole is the reply to a request that did not ask for a stream.
func (c *completion) whole() map[string]any {
	text := ""
	for _, delta := range c.reply.Text {
		text += delta
	}
	message := map[string]any{"role": "assistant", "content": text}
	if c.reply.Thinking != "" {
		message["reasoning_content"] = c.reply.Thinking
	}
	if len(c.calls) > 0 {
		message["tool_calls"] = c.calls
	}
	body := c.head("chat.completion", map[string]any{"message": message, "finish_reason": c.finish()})
	body["usage"] = c.usage()
	return body
}

// stream writes the reply as server-sent events; an error means that the agent
// has left.
func (c *completion) stream(ctx context.Context, w http.ResponseWriter, usage bool) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := &sse{ctx: ctx, w: w}
	delta := func(fields map[string]any) {
		out.data(c.head("chat.completion.chunk", map[string]any{"delta": fields, "finish_reason": nil}))
	}
	delta(map[string]any{"role": "assistant", "content": ""})
	if text := c.reply.Thinking; text != "" {
		delta(map[string]any{"reasoning_content": text[:len(text)/2]})
		delta(map[string]any{"reasoning_content": text[len(text)/2:]})
	}
	for _, text := range c.reply.Text {
		out.wait(c.reply.Every)
		delta(map[string]any{"content": text})
	}
	if c.reply.Reset == "text" {
		out.reset()
	}
	if c.reply.Hang {
		out.wait(time.Hour)
	}
	if c.reply.Drop {
		out.drop()
	}
	for i, call := range c.calls {
		function := call["function"].(map[string]any)
		arguments := function["arguments"].(string)
		delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": call["id"], "type": "function",
			"function": map[string]any{"name": function["name"], "arguments": ""}}}})
		for _, part := range []string{arguments[:len(arguments)/2], arguments[len(arguments)/2:]} {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": part}}}})
			if c.reply.Reset == "call" {
				out.reset()
			}
		}
	}
	out.data(c.head("chat.completion.chunk", map[string]any{"delta": map[string]any{}, "finish_reason": c.finish()}))
	if usage {
		last := c.head("chat.completion.chunk", map[string]any{})
		last["choices"], last["usage"] = []any{}, c.usage()
		out.data(last)
	}
	out.raw("[DONE]")
	return out.err
}
