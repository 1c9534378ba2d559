package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

// toolCall is one use of a tool of amux's, by a model.
type toolCall struct {
	tool  string
	input map[string]any
}

// director is a model that uses the tools of amux mcp in turn. Other conversations than its
// own are the fake model's.
type director struct {
	*httptest.Server
	steps []func(results []string) toolCall

	mu      sync.Mutex
	results []string // of the tools so far
}

// direction is in the prompt of the conversation that the director leads.
const direction = "[direct]"

// newDirector starts one.
func newDirector(t *testing.T, steps ...func(results []string) toolCall) *director {
	t.Helper()
	fake, err := fakemodel.Start(fakemodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fake.Close() })
	to, err := url.Parse(fake.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := &director{steps: steps}
	others := httputil.NewSingleHostReverseProxy(to)
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.serve(w, r) {
			others.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// serve answers a request of the conversation that it leads.
func (d *director) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/messages") {
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		return false
	}
	var request struct {
		Stream   bool      `json:"stream"`
		Tools    []any     `json:"tools"`
		Messages []message `json:"messages"`
	}
	ours := json.Unmarshal(body, &request) == nil && request.Stream && len(request.Tools) > 0 && len(request.Messages) > 0 && strings.Contains(string(request.Messages[0].Content), direction)
	if !ours {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return false
	}
	var results []string
	for _, m := range request.Messages {
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				results = append(results, text(b.Content))
			}
		}
	}
	d.mu.Lock()
	d.results = results
	d.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, data map[string]any) {
		data["type"] = kind
		line, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, line)
	}
	usage := map[string]any{"input_tokens": 10, "output_tokens": 1}
	send("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", len(results)), "type": "message", "role": "assistant", "model": "claude-haiku", "content": []any{}, "stop_reason": nil, "usage": usage}})
	stop := "end_turn"
	if len(results) < len(d.steps) {
		step := d.steps[len(results)](results)
		stop = "tool_use"
		input, _ := json.Marshal(step.input)
		send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(results)), "name": "mcp__amux__" + step.tool, "input": map[string]any{}}})
		send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
	} else {
		send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": "All steps are done."}})
	}
	send("content_block_stop", map[string]any{"index": 0})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	send("message_stop", map[string]any{})
	return true
}

// seen are the results of the tools.
func (d *director) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.results
}

// text is that of the content of a tool's result: a string, or blocks.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []block
	_ = json.Unmarshal(content, &blocks)
	var all strings.Builder
	for _, b := range blocks {
		all.WriteString(b.Text)
	}
	return all.String()
}

var runID = regexp.MustCompile(`"run_id":\s*"([0-9A-Z]{26})"`)

// lastRun is the run that a result names.
func lastRun(t *testing.T, results []string, n int) string {
	found := runID.FindStringSubmatch(results[n])
	if found == nil {
		t.Errorf("result %d names no run: %s", n, results[n])
		return "none"
	}
	return found[1]
}
