package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRunsOfDemo validates what the built amux prints of runs that use every directive of
// the demo agent which changes what is emitted, and of runs that fail.
func TestRunsOfDemo(t *testing.T) {
	t.Parallel()
	amux, err := filepath.Abs(root("bin", "amux"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(amux); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	v := newValidator(t)
	config, seen := t.TempDir(), map[string]bool{}
	for _, test := range []struct {
		name  string
		args  []string
		stdin []string // lines of --input ndjson
		last  string   // type of the last line
	}{
		{"show", []string{"run", "demo", "[fast]"}, nil, "run_end"},
		{"words", []string{"run", "demo", "[think:hm][say:x][lines:3][stderr:oops][raw:{}][raw:not json][bigline:100000]"}, nil, "run_end"},
		{"denied", []string{"run", "demo", "[approve]", "--approve", "deny"}, nil, "run_end"},
		{"failed", []string{"run", "demo", "[fail]"}, nil, "run_end"},
		{"limited", []string{"run", "demo", "[fail:RATE_LIMITED]"}, nil, "run_end"},
		{"auth", []string{"run", "demo", "[fail:AUTH_ERROR]"}, nil, "run_end"},
		{"context", []string{"run", "demo", "[fail:CONTEXT_EXCEEDED]"}, nil, "run_end"},
		{"exit", []string{"run", "demo", "[exit:3]"}, nil, "run_end"},
		{"crash", []string{"run", "demo", "[crash]"}, nil, "run_end"},
		{"retried", []string{"run", "demo", "[crash]", "--retry=2"}, nil, "run_end"},
		{"timeout", []string{"run", "demo", "[sleep:100]", "--timeout", "300ms"}, nil, "run_end"},
		{"silent", []string{"run", "demo", "[sleep:100]", "--idle-timeout", "300ms"}, nil, "run_end"},
		{"budget", []string{"run", "demo", "[fast]", "--max-tokens", "1"}, nil, "run_end"},
		{"no agent", []string{"run", "nobody", "x"}, nil, "error"},
		{"bad value", []string{"run", "demo", "x", "--timeout", "-1s"}, nil, "error"},
		{"answers", []string{"run", "demo", "--input", "ndjson", "--approve", "ask"}, []string{
			`{"type":"prompt","text":"[approve][ask]"}`, `{"type":"set_model","model":"large"}`, `{"type":"set_approve","approve":"ask"}`, `{"type":"approve"}`, `{"type":"answer","text":"blue"}`, `{"type":"end"}`,
		}, "run_end"},
		{"interrupted", []string{"run", "demo", "--input", "ndjson"}, []string{
			`{"type":"prompt","text":"[sleep:100]"}`, `{"type":"interrupt"}`, `{"type":"stop"}`,
		}, "run_end"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, amux, append(test.args, "--json")...)
		cmd.Env, cmd.Dir = []string{"HOME=" + config, "PATH=" + os.Getenv("PATH"), "AGENT_MUX_CONFIG_DIR=" + config}, config
		var stdin io.WriteCloser
		if test.stdin != nil {
			if stdin, err = cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last, rest := "", test.stdin
		say := func(kind string) { // the lines that a program sends when it has read kind
			for len(rest) > 0 && when(rest[0]) == kind {
				if _, err := io.WriteString(stdin, rest[0]+"\n"); err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
				rest = rest[1:]
			}
		}
		say("")
		for lines := json.NewDecoder(out); ; {
			var line json.RawMessage
			if err := lines.Decode(&line); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			var event struct{ Type string }
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if err := v.line(line); err != nil {
				t.Errorf("%s: %v\n%s", test.name, err, bytes.TrimSpace(line))
			}
			last, seen[event.Type] = event.Type, true
			say(event.Type)
		}
		if err := cmd.Wait(); ctx.Err() != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if last != test.last || len(rest) > 0 {
			t.Errorf("%s: the last line is %q, want %q; not sent: %s", test.name, last, test.last, rest)
		}
	}
	for _, kind := range strings.Fields("approval_request approvals_changed approval_granted approval_denied input_required input_answered interrupted aborted timeout crash retry log error rate_limit_error auth_error context_exceeded token_usage cost tool_error file_patch") {
		if !seen[kind] {
			t.Errorf("no run emitted %s", kind)
		}
	}
}

// when is the type of the event after which a program sends a line.
func when(line string) string {
	for what, kind := range map[string]string{
		"prompt": "", "set_model": "approval_request", "set_approve": "approval_request", "approve": "approval_request", "answer": "input_required",
		"end": "turn_end", "interrupt": "turn_start", "stop": "turn_end",
	} {
		if strings.HasPrefix(line, `{"type":"`+what+`"`) {
			return kind
		}
	}
	return "never"
}

// TestSchemasAreStrictEnough shows that the schemas refuse what is wrong and take what a
// later version may add.
func TestSchemasAreStrictEnough(t *testing.T) {
	t.Parallel()
	load := func(name string) []byte {
		data, err := os.ReadFile(root("docs", "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	events, input := compile(t, load("events.schema.json"))[""], compile(t, load("input.schema.json"))[""]
	const head = `"run_id":"01M888HCKMYGJ6WQWXV9RSHYH8","seq":1,"time":"2026-11-25T02:28:43.801322Z","agent":"a"`
	for line, good := range map[string]bool{
		`{"type":"text_delta",` + head + `,"delta":"x"}`:                                           true,
		`{"type":"text_delta",` + head + `,"delta":"x","new":1}`:                                   true,
		`{"type":"hologram",` + head + `,"depth":3}`:                                               true,
		`{"type":"text_delta",` + head + `}`:                                                       false,
		`{"type":"text_delta",` + head + `,"delta":null}`:                                          false,
		`{"type":"text_delta","seq":1,"delta":"x"}`:                                                false,
		`{"type":"hologram","depth":3}`:                                                            false,
		`{"type":"rate_limited",` + head + `,"retry_after_ms":null}`:                               true,
		`{"type":"rate_limited",` + head + `,"retry_after_ms":"soon"}`:                             false,
		`{"type":"turn_start",` + head + `,"turn_index":1.5}`:                                      false,
		`{"type":"timeout",` + head + `,"kind":"moon"}`:                                            true, // a word of later
		`{"type":"timeout",` + head + `,"kind":7}`:                                                 false,
		`{"type":"error",` + head + `,"code":"INTERNAL","message":"m","recoverable":false}`:        true,
		`{"type":"error","code":"INTERNAL","message":"m","recoverable":false}`:                     true, // no run
		`{"type":"error","seq":1,"code":"INTERNAL","message":"m","recoverable":false}`:             false,
		`{"type":"text_delta",` + strings.Replace(head, ":1,", ":0,", 1) + `,"delta":"x"}`:         false,
		`{"type":"text_delta",` + strings.Replace(head, "01M8", "1M8", 1) + `,"delta":"x"}`:        false,
		`{"type":"text_delta",` + strings.Replace(head, "2026-", "yesterday", 1) + `,"delta":"x"}`: false,
		`["text_delta"]`: false,
	} {
		check(t, events, line, good)
	}
	for line, good := range map[string]bool{
		`{"type":"prompt","text":"x"}`: true,
		`{"type":"prompt"}`:            false,
		`{"type":"approve"}`:           true,
		`{"type":"approve","interaction_id":"a","updated_input":{"b":[1]},"why":1}`: true,
		`{"type":"approve","interaction_id":7}`:                                     false,
		`{"type":"set_model"}`:                                                      false,
		`{"type":"set_approve","approve":"auto"}`:                                   true,
		`{"type":"set_approve"}`:                                                    false,
		`{"type":"stop"}`:                                                           true,
		`{"type":"explode"}`:                                                        false,
		`{}`:                                                                        false,
	} {
		check(t, input, line, good)
	}
}
