package demo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// talk runs the agent with those lines on its stdin, then end of file, and
// returns its lines, its stderr and its exit code.
func talk(t *testing.T, lines ...string) ([]map[string]any, string, int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := RunAgent(nil, strings.NewReader(strings.Join(lines, "\n")+"\n"), &stdout, &stderr)
	var got []map[string]any
	for line := range strings.Lines(stdout.String()) {
		var v map[string]any
		if json.Unmarshal([]byte(line), &v) != nil {
			v = map[string]any{"type": "garbage", "text": line}
		}
		got = append(got, v)
	}
	return got, stderr.String(), code
}

func prompt(text string) string {
	data, _ := json.Marshal(line{Type: "prompt", Text: text})
	return string(data)
}

func last(lines []map[string]any) map[string]any { return lines[len(lines)-1] }

func text(lines []map[string]any) string {
	var b strings.Builder
	for _, l := range lines {
		if l["type"] == "text" {
			b.WriteString(l["text"].(string))
		}
	}
	return b.String()
}

func TestDirectives(t *testing.T) {
	for _, test := range []struct {
		name   string
		prompt string
		check  func(lines []map[string]any, stderr string, code int) bool
	}{
		{"show", "hello [fast]", func(l []map[string]any, _ string, code int) bool {
			return strings.Contains(text(l), "You said: hello") && last(l)["status"] == "ok" && code == 0
		}},
		{"lines", "[lines:3]", func(l []map[string]any, _ string, _ int) bool {
			return strings.HasPrefix(text(l), "line 1\nline 2\nline 3\n")
		}},
		{"in order", "first [say:a] then [lines:1] and [say:b]", func(l []map[string]any, _ string, _ int) bool {
			return text(l) == "aline 1\nbDone."
		}},
		{"exit", "[lines:1][exit:7]", func(l []map[string]any, _ string, code int) bool {
			return code == 7 && last(l)["type"] == "message_end"
		}},
		{"fail", "[fail]", func(l []map[string]any, _ string, code int) bool {
			return code == 0 && last(l)["status"] == "failed"
		}},
		{"fail with code", "[fail:RATE_LIMITED]", func(l []map[string]any, _ string, _ int) bool {
			return last(l)["code"] == "RATE_LIMITED"
		}},
		{"nonsense", "[lines:many]", func(l []map[string]any, _ string, _ int) bool {
			return last(l)["code"] == "VALIDATION_ERROR"
		}},
		{"nobody approves", "[approve]", func(l []map[string]any, _ string, _ int) bool {
			return last(l)["status"] == "failed" && l[len(l)-4]["type"] == "withdrawn"
		}},
		{"stderr", `[stderr:a\tb]`, func(_ []map[string]any, stderr string, _ int) bool { return stderr == "a\tb\n" }},
		{"raw", `[raw:{"x\xff]`, func(l []map[string]any, _ string, _ int) bool {
			return l[2]["type"] == "garbage" && l[2]["text"] == "{\"x\xff\n"
		}},
		{"bigline", "[bigline:100001]", func(l []map[string]any, _ string, _ int) bool { return len(text(l)) == 100001+len("Done.") }},
		{"unknown brackets", "[fast] see [1] and [link](x)", func(l []map[string]any, _ string, _ int) bool {
			return strings.Contains(text(l), "[1] and [link](x)")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines, stderr, code := talk(t, prompt(test.prompt))
			if !test.check(lines, stderr, code) {
				t.Errorf("code %d, stderr %q, lines %v", code, stderr, lines)
			}
		})
	}
}

func TestPromptArrivesWhole(t *testing.T) {
	big := strings.Repeat("0123456789 äöü\n", 350_000) // 5 MB and more
	want := fmt.Sprintf("%d bytes, sha256 %x", len(big)+6, sha256.Sum256([]byte("[fast]"+big)))
	lines, _, _ := talk(t, prompt("[fast]"+big))
	if !strings.Contains(text(lines), want) {
		t.Errorf("no %q", want)
	}
}

// live is a running agent.
type live struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
	end chan int
}

func start(t *testing.T) *live {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	l := &live{t: t, in: inW, out: bufio.NewScanner(outR), end: make(chan int, 1)}
	go func() {
		code := RunAgent([]string{"-model", "demo-large"}, inR, outW, os.Stderr)
		outW.Close()
		l.end <- code
	}()
	return l
}

func (l *live) send(line string) { fmt.Fprintln(l.in, line) }

// until reads lines until one of that type.
func (l *live) until(kind string) map[string]any {
	l.t.Helper()
	for l.out.Scan() {
		var v map[string]any
		if json.Unmarshal(l.out.Bytes(), &v) == nil && v["type"] == kind {
			return v
		}
	}
	l.t.Fatalf("no %s", kind)
	return nil
}

func TestConversation(t *testing.T) {
	l := start(t)
	if hello := l.until("hello"); hello["model"] != "demo-large" {
		t.Errorf("hello %v", hello)
	}
	l.send(`{"type":"interrupt"}`) // void: nothing is done
	l.send(prompt("[approve]"))
	ask := l.until("permission")
	l.send(`{"type":"reply","id":"other","allow":true}`)
	l.send(fmt.Sprintf(`{"type":"reply","id":%q,"allow":true,"input":{"content":"updated"}}`, ask["id"]))
	if done := l.until("tool_done"); !strings.Contains(done["output"].(string), "updated") {
		t.Errorf("done %v", done)
	}
	if end := l.until("turn_end"); end["status"] != "ok" {
		t.Errorf("end %v", end)
	}
	l.send(prompt("[sleep:1000]"))
	l.send(`{"type":"interrupt"}`) // at once after its prompt
	if end := l.until("turn_end"); end["status"] != "interrupted" {
		t.Errorf("end %v", end)
	}
	l.send(prompt("[ask]"))
	ask = l.until("question")
	l.send(`{"type":"interrupt"}`)
	if gone := l.until("withdrawn"); gone["id"] != ask["id"] {
		t.Errorf("withdrawn %v", gone)
	}
	l.until("turn_end")
	l.send(`{"type":"model","model":"demo-small"}`)
	l.until("model")
	l.send(prompt("[lines:10]"))
	l.in.Close() // works off what it has, then ends
	if end := l.until("turn_end"); end["status"] != "ok" {
		t.Errorf("end %v", end)
	}
	for l.out.Scan() {
		t.Errorf("more: %s", l.out.Text())
	}
	if code := <-l.end; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
