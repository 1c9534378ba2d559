package fakemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// GeminiRequest is the body of models/MODEL:generateContent as far as tests ask
// for it.
type GeminiRequest struct {
	Model             string          `json:"-"` // from the path
	Contents          []GeminiContent `json:"contents"`
	SystemInstruction GeminiContent   `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

// GeminiContent is one message of a request.
type GeminiContent struct {
	Role  string       `json:"role"`
	Parts []GeminiPart `json:"parts"`
}

// GeminiPart is one part of a message.
type GeminiPart struct {
	Text       string `json:"text"`
	InlineData struct {
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
	} `json:"inlineData"`
	FunctionResponse *struct {
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// Gemini reads the request's body as one of the Gemini API.
func (r Request) Gemini() (GeminiRequest, error) {
	var body GeminiRequest
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return body, fmt.Errorf("request %d is not of the Gemini API: %w", r.N, err)
	}
	body.Model = geminiModel(r.Path)
	return body, nil
}

// geminiModel reads ".../models/MODEL:method".
func geminiModel(path string) string {
	model, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	return model
}

// turn finds the newest prompt: the last user message with a marker, or with text
// and no result of a tool.
func (body *GeminiRequest) turn() *Turn {
	t := &Turn{}
	for _, tool := range body.Tools {
		for _, f := range tool.FunctionDeclarations {
			t.Tools = append(t.Tools, f.Name)
		}
	}
	for i := len(body.Contents) - 1; i >= 0; i-- {
		content := body.Contents[i]
		if content.Role == "model" {
			t.Round++
			continue
		}
		text, results := "", false
		for _, part := range content.Parts {
			results = results || part.FunctionResponse != nil
			text += promptText(part.Text)
		}
		if markerPattern.MatchString(text) || text != "" && !results {
			t.Prompt = text
			return t
		}
	}
	return t
}

func (s *Server) routeGemini(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1beta/models/{call}", s.serveGemini)
}

func (s *Server) serveGemini(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch method {
	case "countTokens":
		s.note(r, data, http.StatusOK)
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": InputTokens + CacheReadTokens})
		return
	case "generateContent", "streamGenerateContent":
	default:
		s.note(r, data, http.StatusNotFound)
		http.NotFound(w, r)
		return
	}
	kept := s.note(r, data, 0)
	var body GeminiRequest
	t, reply := s.reply(data, &body, &model)
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
			"code": reply.Status, "message": geminiMessage(reply), "status": geminiStatus(reply.Status)}})
		return
	}
	if reply.Drop && (len(reply.Text) == 0 || method == "generateContent") {
		drop(w)
		return
	}
	g := &generation{model: model, reply: reply}
	for _, call := range reply.Calls {
		name, input := call.native(t.Tools)
		g.calls = append(g.calls, map[string]any{"functionCall": map[string]any{"name": name, "args": input}})
	}
	if method == "generateContent" {
		writeJSON(w, http.StatusOK, g.whole())
		return
	}
	if err := g.stream(r.Context(), w); err != nil {
		s.update(func() { kept.Broken = true })
	}
}

// geminiStatus is what this API calls an HTTP status.
func geminiStatus(status int) string {
	switch status {
	case 400:
		return "INVALID_ARGUMENT"
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 529:
		return "UNAVAILABLE"
	}
	return "INTERNAL"
}

// geminiMessage is what this API says of an error.
func geminiMessage(reply Reply) string {
	if name, ok := strings.CutPrefix(reply.Message, "model: "); ok && reply.Status == http.StatusNotFound {
		return "models/" + name + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."
	}
	return reply.Message
}

// generation is a reply in the words of the Gemini API.
type generation struct {
	model string
	reply Reply
	calls []any
}

func (g *generation) head(parts []any, finish bool) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	body := map[string]any{"candidates": []any{candidate}, "modelVersion": g.model}
	if finish {
		candidate["finishReason"] = "STOP"
		// This API counts cached tokens as part of the prompt's, and thoughts apart.
		usage := map[string]any{
			"promptTokenCount": InputTokens + CacheReadTokens, "cachedContentTokenCount": CacheReadTokens,
			"candidatesTokenCount": OutputTokens, "totalTokenCount": InputTokens + CacheReadTokens + OutputTokens,
		}
		if g.reply.Thinking != "" {
			usage["thoughtsTokenCount"], usage["candidatesTokenCount"] = ThinkingTokens, OutputTokens-ThinkingTokens
		}
		body["usageMetadata"] = usage
	}
	return body
}

func textPart(text string) map[string]any { return map[string]any{"text": text} }

func (g *generation) whole() map[string]any {
	if g.reply.Refused {
		return g.refused()
	}
	var parts []any
	if g.reply.Thinking != "" {
		parts = append(parts, map[string]any{"text": g.reply.Thinking, "thought": true})
	}
	if len(g.reply.Text) > 0 {
		parts = append(parts, textPart(strings.Join(g.reply.Text, "")))
	}
	return g.head(append(parts, g.calls...), true)
}

// stream writes the reply as server-sent events; an error means that the agent
// has left.
func (g *generation) stream(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream")
	out := &sse{ctx: ctx, w: w}
	if g.reply.Thinking != "" {
		out.data(g.head([]any{map[string]any{"text": g.reply.Thinking, "thought": true}}, false))
	}
	for _, text := range g.reply.Text {
		out.wait(g.reply.Every)
		out.data(g.head([]any{textPart(text)}, false))
	}
	if g.reply.Reset != "" { // its calls come whole
		out.reset()
	}
	if g.reply.Hang {
		out.wait(time.Hour)
	}
	if g.reply.Drop {
		out.drop()
	}
	if g.reply.Refused {
		out.data(g.refused())
		return out.err
	}
	out.data(g.head(append([]any{}, g.calls...), true))
	return out.err
}

// refused is the reply to a prompt that this API does not answer.
func (g *generation) refused() map[string]any {
	body := g.head(nil, true)
	delete(body, "candidates")
	body["promptFeedback"] = map[string]any{"blockReason": "PROHIBITED_CONTENT"}
	return body
}
