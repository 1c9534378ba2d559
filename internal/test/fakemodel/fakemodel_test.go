package fakemodel

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T) *Server {
	t.Helper()
	server, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

func post(t *testing.T, server *Server, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "sk-secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestNewestPromptChoosesScript(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, messages string
		script, arg    string
		round          int
	}{
		{"string", `{"role":"user","content":"[fm:bash] go"}`, "bash", "", 0},
		{"argument", `{"role":"user","content":"[fm:deltas=7]"}`, "deltas", "7", 0},
		{"no marker", `{"role":"user","content":"hi"}`, "text", "", 0},
		{"after a tool", `{"role":"user","content":"[fm:bash]"},{"role":"assistant","content":[{"type":"tool_use"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"hi"}]}`, "bash", "", 1},
		{"second turn", `{"role":"user","content":"[fm:bash]"},{"role":"assistant","content":"x"},
			{"role":"user","content":"[fm:think]"}`, "think", "", 0},
		{"second turn without marker", `{"role":"user","content":"[fm:bash]"},{"role":"assistant","content":"x"},
			{"role":"user","content":"thanks"}`, "text", "", 0},
		{"folded into a tool result", `{"role":"user","content":"[fm:bash]"},{"role":"assistant","content":"x"},
			{"role":"user","content":[{"type":"tool_result"},{"type":"text","text":"[fm:think]"}]}`, "think", "", 0},
		{"reminder", `{"role":"user","content":[{"type":"text","text":"<system-reminder>[fm:401]</system-reminder>"},
			{"type":"text","text":"[fm:bash]"}]}`, "bash", "", 0},
		{"reminder only", `{"role":"user","content":"[fm:bash]"},{"role":"assistant","content":"x"},
			{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"}]}`, "bash", "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			resp := post(t, server, `{"model":"m","messages":[`+c.messages+`]}`)
			if resp.StatusCode != 200 {
				t.Fatalf("status %d", resp.StatusCode)
			}
			got := server.Requests()[0]
			if got.Script != c.script || got.Arg != c.arg || got.Round != c.round {
				t.Errorf("got %s=%s round %d, want %s=%s round %d", got.Script, got.Arg, got.Round, c.script, c.arg, c.round)
			}
			if key := got.Header.Get("X-Api-Key"); key != "redacted" {
				t.Errorf("key kept: %q", key)
			}
		})
	}
}

func TestStreamEqualsWhole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "think", "bash", "parallel", "text-then-bash", "deltas=50"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `"model":"m","messages":[{"role":"user","content":"[fm:` + name + `]"}],"tools":[{"name":"Bash"}]`
			whole, streamed := start(t), start(t)
			var want map[string]any
			if err := json.NewDecoder(post(t, whole, `{`+body+`}`).Body).Decode(&want); err != nil {
				t.Fatal(err)
			}
			got := assemble(t, post(t, streamed, `{"stream":true,`+body+`}`).Body)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("stream differs (-whole +stream):\n%s", diff)
			}
		})
	}
}

// assemble makes a message of a stream, as a client does.
func assemble(t *testing.T, body io.Reader) map[string]any {
	t.Helper()
	var message map[string]any
	var blocks []any
	partial := ""
	scanner := bufio.NewScanner(body)
	for scanner.Scan() {
		data, ok := strings.CutPrefix(scanner.Text(), "data: ")
		if !ok {
			continue
		}
		var event struct {
			Type    string
			Message map[string]any
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Usage   map[string]any
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		switch event.Type {
		case "message_start":
			message = event.Message
		case "content_block_start":
			blocks, partial = append(blocks, event.Block), ""
		case "content_block_delta":
			block := blocks[len(blocks)-1].(map[string]any)
			for key, value := range event.Delta {
				switch key {
				case "text", "thinking", "signature":
					block[key] = block[key].(string) + value.(string)
				case "partial_json":
					partial += value.(string)
				}
			}
			_, thinking := block["thinking"]
			if thinking {
				break
			}
			if partial != "" {
				var input map[string]any
				if json.Unmarshal([]byte(partial), &input) == nil {
					block["input"] = input
				}
			}
		case "message_delta":
			message["stop_reason"], message["usage"] = event.Delta["stop_reason"], event.Usage
		}
	}
	message["content"] = blocks
	return message
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		script, kind, retry string
		status              int
	}{
		{"401", "authentication_error", "", 401},
		{"429=7", "rate_limit_error", "7", 429},
		{"529", "overloaded_error", "", 529},
		{"context", "invalid_request_error", "", 400},
		{"no-such-script", "", "", 400},
	}
	for _, c := range cases {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			resp := post(t, start(t), `{"stream":true,"messages":[{"role":"user","content":"[fm:`+c.script+`]"}]}`)
			var body struct {
				Error struct{ Type, Message string }
			}
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || body.Error.Type != c.kind || resp.Header.Get("Retry-After") != c.retry {
				t.Errorf("got %d %+v retry-after %q", resp.StatusCode, body, resp.Header.Get("Retry-After"))
			}
		})
	}
}

func TestFlakyThenWell(t *testing.T) {
	t.Parallel()
	server := start(t)
	var got []int
	for range 4 {
		got = append(got, post(t, server, `{"messages":[{"role":"user","content":"[fm:flaky=2]"}]}`).StatusCode)
	}
	if diff := cmp.Diff([]int{500, 500, 200, 200}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHangEndsWithClient(t *testing.T) {
	t.Parallel()
	server := start(t)
	resp := post(t, server, `{"stream":true,"messages":[{"role":"user","content":"[fm:hang]"}]}`)
	resp.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := server.Wait(ctx, func(r Request) bool { return r.Broken }); err != nil {
		t.Error(err)
	}
}

func TestInstanceOfSchema(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	json.Unmarshal([]byte(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"},
		"l":{"type":"array","items":{"enum":["x","y"]}},"b":{"type":"boolean"}}}`), &schema)
	want := map[string]any{"a": "text", "n": 42, "l": []any{"x"}, "b": true}
	if diff := cmp.Diff(want, instance(schema)); diff != "" {
		t.Error(diff)
	}
}
