//go:build unix

package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// wire is a client that writes the lines of the protocol itself: the SDK knows no tasks.
type wire struct {
	t   *testing.T
	cmd *exec.Cmd
	in  func(line string)
	out *bufio.Scanner
	n   int
}

func (h user) wire(args ...string) *wire {
	h.T.Helper()
	cmd := exec.Command(h.Amux, append([]string{"mcp"}, args...)...)
	cmd.Dir, cmd.Env = h.Dir, slices.Clone(h.Env)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		h.T.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		h.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.T.Fatal(err)
	}
	w := &wire{t: h.T, cmd: cmd, in: func(line string) { fmt.Fprintln(stdin, line) }, out: bufio.NewScanner(stdout)}
	w.out.Buffer(nil, 16<<20)
	h.T.Cleanup(w.kill)
	var hello struct {
		Capabilities struct{ Extensions map[string]any }
	}
	w.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, &hello)
	if hello.Capabilities.Extensions["io.modelcontextprotocol/tasks"] == nil {
		h.T.Errorf("the server says that it can %+v", hello)
	}
	w.in(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w *wire) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// ask sends a request and reads its result; it returns the message of an error.
func (w *wire) ask(method, params string, result any) string {
	w.t.Helper()
	w.n++
	w.in(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, w.n, method, params))
	for w.out.Scan() {
		var answer struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(w.out.Bytes(), &answer); err != nil {
			w.t.Fatalf("%v: %s", err, w.out.Text())
		}
		if string(answer.ID) != fmt.Sprint(w.n) {
			continue // a notification
		}
		if answer.Error != nil {
			return answer.Error.Message
		}
		if err := json.Unmarshal(answer.Result, result); err != nil {
			w.t.Fatalf("%v: %s", err, answer.Result)
		}
		return ""
	}
	w.t.Fatalf("%s: no answer: %v", method, w.out.Err())
	return ""
}

// taskOf is what tests look at of a task.
type taskOf struct {
	ResultType    string
	TaskID        string `json:"taskId"`
	Status        string
	StatusMessage string
	CreatedAt     time.Time
	LastUpdatedAt time.Time
	TTLMs         *int            `json:"ttlMs"`
	Poll          int             `json:"pollIntervalMs"`
	Inputs        map[string]any  `json:"inputRequests"`
	Result        json.RawMessage // of the call
}

const declared = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

func (w *wire) start(prompt string) (t taskOf) {
	w.t.Helper()
	if problem := w.ask("tools/call", fmt.Sprintf(`{"name":"run_start","arguments":{"agent":"demo","prompt":%q,"wait":true},%s}`, prompt, declared), &t); problem != "" {
		w.t.Fatal(problem)
	}
	if t.ResultType != "task" || t.TaskID == "" || t.CreatedAt.IsZero() || t.LastUpdatedAt.IsZero() || t.TTLMs != nil || t.Poll == 0 {
		w.t.Fatalf("the task is %+v", t)
	}
	return t
}

// until asks for a task until it has a status.
func (w *wire) until(id, status string) (t taskOf) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		t = taskOf{}
		if problem := w.ask("tasks/get", fmt.Sprintf(`{"taskId":%q,%s}`, id, declared), &t); problem != "" {
			w.t.Fatal(problem)
		}
		if t.ResultType != "complete" || t.TaskID != id {
			w.t.Fatalf("the task is %+v", t)
		}
		if t.Status == status {
			return t
		}
		if time.Now().After(end) {
			w.t.Fatalf("the task is never %s: %+v", status, t)
		}
	}
}

// A run is a task for a client that knows tasks: it outlives the server, waits for the
// client's answers, and is cancelled as a run is stopped.
func TestTasks(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.wire("--answer")
	task := w.start("[approve][ask:which?][say:the end]")
	asks := w.until(task.TaskID, "input_required")
	if len(asks.Inputs) != 1 || !strings.Contains(fmt.Sprint(asks.Inputs), "approved.txt") || !strings.Contains(fmt.Sprint(asks.Inputs), "elicitation/create") {
		t.Errorf("it asks %+v", asks.Inputs)
	}
	w.kill() // the task is still there
	w = h.wire("--answer")
	answer := func(content string) {
		t.Helper()
		for id := range w.until(task.TaskID, "input_required").Inputs {
			var done struct{ ResultType string }
			if problem := w.ask("tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":{"nobody-asked":{"action":"decline"},%q:{"action":"accept","content":%s}}}`, task.TaskID, id, content), &done); problem != "" || done.ResultType != "complete" {
				t.Errorf("%s: %+v, %s", content, done, problem)
			}
		}
	}
	answer(`{"answer":"approve"}`)
	answer(`{"answer":"blue"}`)
	end := w.until(task.TaskID, "completed")
	var result struct {
		IsError           bool
		Content           []struct{ Type, Text string }
		StructuredContent struct {
			RunID string `json:"run_id"`
			Run   state
		}
	}
	if err := json.Unmarshal(end.Result, &result); err != nil || result.IsError || len(result.Content) != 1 || result.StructuredContent.RunID != task.TaskID ||
		result.StructuredContent.Run.State != "completed" || !strings.Contains(result.StructuredContent.Run.Answer, "Done.") {
		t.Errorf("%v: it ends with %s", err, end.Result)
	}
	failed := w.until(w.start("[exit:3]").TaskID, "completed")
	if !strings.Contains(string(failed.Result), `"isError":true`) {
		t.Errorf("a run that has failed is %s", failed.Result)
	}
	long := w.start("[sleep:600]")
	var done struct{ ResultType string }
	if problem := w.ask("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, long.TaskID), &done); problem != "" || done.ResultType != "complete" {
		t.Errorf("cancel: %+v, %s", done, problem)
	}
	w.until(long.TaskID, "cancelled")
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		for _, id := range []string{"", "nobody", "../../etc", task.TaskID[20:]} {
			var any map[string]any
			if problem := w.ask(method, fmt.Sprintf(`{"taskId":%q}`, id), &any); !strings.Contains(problem, "there is no task") {
				t.Errorf("%s of %q: %q, %v", method, id, problem, any)
			}
		}
	}
	// A client that says nothing of tasks waits, whatever it has said before.
	var waited struct {
		StructuredContent struct{ Run state }
	}
	if problem := w.ask("tools/call", `{"name":"run_start","arguments":{"agent":"demo","prompt":"hello","wait":true}}`, &waited); problem != "" || waited.StructuredContent.Run.State != "completed" {
		t.Errorf("without tasks: %+v, %s", waited, problem)
	}
	// A server that may not answer leaves the question to people.
	plain := h.wire()
	open := plain.start("[approve]")
	h.Until("it waits for people", func() bool {
		return strings.Contains(plain.until(open.TaskID, "working").StatusMessage, "waits for somebody")
	})
	if problem := plain.ask("tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":{}}`, open.TaskID), &done); !strings.Contains(problem, "may not answer") {
		t.Errorf("it answers: %q", problem)
	}
	h.Sh(nil, h.Amux, "deny", open.TaskID)
	plain.until(open.TaskID, "completed")
}
