package fakemodel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func postOpenAI(t *testing.T, server *Server, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// user and reply are items of an input.
func user(text string) string {
	return fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, text)
}

const reply = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}`

func TestOpenAINewestPromptChoosesScript(t *testing.T) {
	t.Parallel()
	const call = `{"type":"reasoning","summary":[]},{"type":"function_call","name":"exec_command","call_id":"a","arguments":"{}"},
		{"type":"function_call_output","call_id":"a","output":"hi"}`
	cases := []struct {
		name, input, script string
		round               int
	}{
		{"string", `"[fm:bash] go"`, "bash", 0},
		{"message", `[` + user("[fm:bash]") + `]`, "bash", 0},
		{"no marker", `[` + user("hi") + `]`, "text", 0},
		{"after a tool", `[` + user("[fm:bash]") + `,` + call + `]`, "bash", 1},
		{"after two tools", `[` + user("[fm:bash]") + `,` + call + `,` + call + `]`, "bash", 2},
		{"second turn", `[` + user("[fm:bash]") + `,` + call + `,` + reply + `,` + user("[fm:think]") + `]`, "think", 0},
		{"the agent's own note", `[` + user("[fm:bash]") + `,` + user("<environment_context>[fm:401]</environment_context>") + `]`, "bash", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			if resp := postOpenAI(t, server, `{"model":"m","input":`+c.input+`}`); resp.StatusCode != 200 {
				t.Fatalf("status %d", resp.StatusCode)
			}
			if got := server.Requests()[0]; got.Script != c.script || got.Round != c.round {
				t.Errorf("got %s round %d, want %s round %d", got.Script, got.Round, c.script, c.round)
			}
		})
	}
}

func TestOpenAIStreamEqualsWhole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "think", "bash", "parallel", "text-then-bash", "edit=/x", "deltas=50", "mcp=a.b", "context"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `"model":"m","input":"[fm:` + name + `]","tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"}]`
			whole, streamed := start(t), start(t)
			var want map[string]any
			if err := json.NewDecoder(postOpenAI(t, whole, `{`+body+`}`).Body).Decode(&want); err != nil {
				t.Fatal(err)
			}
			last, text := assembleOpenAI(t, postOpenAI(t, streamed, `{"stream":true,`+body+`}`).Body)
			if diff := cmp.Diff(want, last); diff != "" {
				t.Errorf("stream differs (-whole +stream):\n%s", diff)
			}
			for _, item := range want["output"].([]any) {
				for _, key := range []string{"content", "summary"} {
					parts, _ := item.(map[string]any)[key].([]any)
					for _, part := range parts {
						if !strings.Contains(text, part.(map[string]any)["text"].(string)) {
							t.Errorf("the deltas lack %v", part)
						}
					}
				}
			}
		})
	}
}

// assembleOpenAI returns the last event's response and the text of all deltas.
func assembleOpenAI(t *testing.T, body io.Reader) (last map[string]any, text string) {
	t.Helper()
	scanner := bufio.NewScanner(body)
	for scanner.Scan() {
		data, ok := strings.CutPrefix(scanner.Text(), "data: ")
		if !ok {
			continue
		}
		var event struct {
			Delta    string
			Response map[string]any
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		text += event.Delta
		if event.Response != nil {
			last = event.Response
		}
	}
	return last, text
}

func TestOpenAICodeMode(t *testing.T) {
	t.Parallel()
	input := `[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},` + user("[fm:bash]") + `]`
	var got struct {
		Output []struct{ Type, Namespace, Name, Input string }
	}
	if err := json.NewDecoder(postOpenAI(t, start(t), `{"model":"m","input":`+input+`}`).Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Output) != 1 || got.Output[0].Type != "custom_tool_call" || got.Output[0].Name != "exec" ||
		!strings.Contains(got.Output[0].Input, `tools.exec_command({"cmd":"echo hi"})`) {
		t.Errorf("got %+v", got.Output)
	}
}

func TestOpenAIErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		script, code, retry string
		status              int
	}{
		{"401", "invalid_api_key", "", 401},
		{"429=7", "rate_limit_exceeded", "7", 429},
		{"529", "server_is_overloaded", "", 503},
		{"500", "", "", 500},
	}
	for _, c := range cases {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			resp := postOpenAI(t, start(t), `{"stream":true,"input":"[fm:`+c.script+`]"}`)
			var body struct {
				Error struct{ Code, Message string }
			}
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || body.Error.Code != c.code || resp.Header.Get("Retry-After") != c.retry {
				t.Errorf("got %d %+v retry-after %q", resp.StatusCode, body, resp.Header.Get("Retry-After"))
			}
		})
	}
}
