//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/amux-dev/amux/internal/test/home"
)

// patience is for a slow machine that does much besides.
const patience = home.Patience

// user is one with an amux of their own.
type user struct{ *home.Home }

func newHome(t *testing.T) user {
	t.Helper()
	h := home.New(t)
	h.Serve()
	return user{h}
}

// client connects a client to amux mcp.
func (h user) client(env []string, args ...string) (*mcp.ClientSession, *exec.Cmd) {
	h.T.Helper()
	cmd := exec.Command(h.Amux, append([]string{"mcp"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.Dir, append(slices.Clone(h.Env), env...), os.Stderr
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(h.T.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = c.Close() })
	return c, cmd
}

// call calls a tool; problem is the text of its error.
func call(t *testing.T, c *mcp.ClientSession, tool string, in map[string]any, out any) (problem string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return err.Error()
	}
	if res.IsError {
		return res.Content[0].(*mcp.TextContent).Text
	}
	data, err := json.Marshal(res.StructuredContent)
	if err == nil && out != nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

func must(t *testing.T, c *mcp.ClientSession, tool string, in map[string]any, out any) {
	t.Helper()
	if problem := call(t, c, tool, in, out); problem != "" {
		t.Fatalf("%s: %s", tool, problem)
	}
}

type state struct {
	RunID, Name, State, Answer string
	Ended                      bool
	Questions                  int
}

func (s *state) UnmarshalJSON(data []byte) error {
	var in struct {
		RunID     string `json:"run_id"`
		Name      string `json:"name"`
		State     string `json:"state"`
		Answer    string `json:"answer"`
		Ended     bool   `json:"ended"`
		Questions int    `json:"questions"`
	}
	err := json.Unmarshal(data, &in)
	*s = state{in.RunID, in.Name, in.State, in.Answer, in.Ended, in.Questions}
	return err
}

type states struct {
	Runs     []state `json:"runs"`
	TimedOut bool    `json:"timed_out"`
}

func start(t *testing.T, c *mcp.ClientSession, prompt string, more map[string]any) string {
	t.Helper()
	in := map[string]any{"agent": "demo", "prompt": prompt}
	for k, v := range more {
		in[k] = v
	}
	var out struct {
		RunID string `json:"run_id"`
	}
	must(t, c, "run_start", in, &out)
	return out.RunID
}

func TestRunAnAgent(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c, _ := h.client(nil)
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || tool.OutputSchema == nil || tool.InputSchema == nil {
			t.Errorf("%s: no annotations or schemas", tool.Name)
		}
	}
	slices.Sort(names)
	if want := []string{"agents_list", "run_diff", "run_list", "run_read", "run_send", "run_start", "run_stop", "run_wait"}; !slices.Equal(names, want) {
		t.Errorf("tools are %q, want %q", names, want)
	}
	id := start(t, c, "hello", map[string]any{"approve": "auto", "name": "first"})
	var waited states
	must(t, c, "run_wait", map[string]any{"run_ids": []string{id}}, &waited)
	if len(waited.Runs) != 1 || waited.Runs[0].State != "completed" || waited.Runs[0].Answer == "" || waited.TimedOut {
		t.Errorf("run_wait returns %+v", waited)
	}
	// All pages together are what amux logs --json prints.
	var lines []string
	for from, more := uint64(1), true; more; {
		var page struct {
			Events []json.RawMessage `json:"events"`
			Next   uint64            `json:"next"`
			More   bool              `json:"more"`
		}
		must(t, c, "run_read", map[string]any{"run_id": id, "format": "events", "from": from, "max_bytes": 1024}, &page)
		if len(page.Events) == 0 || page.Next <= from {
			t.Fatalf("page from %d: %d events, next %d", from, len(page.Events), page.Next)
		}
		for _, e := range page.Events {
			var head struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(e, &head); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, head.Type)
		}
		from, more = page.Next, page.More
	}
	var want []string
	for line := range strings.SplitSeq(h.Sh(nil, h.Amux, "logs", "--json", id), "\n") {
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatal(err)
		}
		want = append(want, head.Type)
	}
	if !slices.Equal(lines, want) {
		t.Errorf("events are %q, want %q", lines, want)
	}
	var text struct {
		Text string `json:"text"`
	}
	must(t, c, "run_read", map[string]any{"run_id": id}, &text)
	if !strings.Contains(text.Text, waited.Runs[0].Answer) {
		t.Errorf("text is %q", text.Text)
	}
	// A conversation takes a prompt and ends.
	talk := start(t, c, "hello", map[string]any{"conversation": true})
	must(t, c, "run_send", map[string]any{"run_id": talk, "prompt": "again", "end": true}, nil)
	must(t, c, "run_wait", map[string]any{"run_ids": []string{talk}}, &waited)
	if !waited.Runs[0].Ended {
		t.Errorf("the conversation is %+v", waited.Runs[0])
	}
	// Another one is stopped.
	long := start(t, c, "hello", map[string]any{"conversation": true})
	must(t, c, "run_stop", map[string]any{"run_ids": []string{long}}, &waited)
	must(t, c, "run_wait", map[string]any{"run_ids": []string{long}}, &waited)
	if !waited.Runs[0].Ended {
		t.Errorf("the stopped run is %+v", waited.Runs[0])
	}
	for _, bad := range []struct {
		tool string
		in   map[string]any
		want string
	}{
		{"run_start", map[string]any{"agent": "nope", "prompt": "x"}, "AGENT_NOT_FOUND"},
		{"run_start", map[string]any{"agent": "demo", "prompt": " "}, "no prompt"},
		{"run_start", map[string]any{"agent": "demo", "prompt": "x", "cwd": "rel"}, "absolute"},
		{"run_start", map[string]any{"agent": "demo", "prompt": "x", "approve": "yes"}, "approve"},
		{"run_start", map[string]any{"agent": "demo", "prompt": "x", "shell": "yes"}, "shell"},
		{"run_wait", map[string]any{"run_ids": []string{}}, "expected 1 to 50"},
		{"run_read", map[string]any{"run_id": id, "max_bytes": 5}, "max_bytes"},
		{"run_send", map[string]any{"run_id": id}, "no prompt"},
		{"run_answer", map[string]any{"run_id": id, "interaction_id": "x", "answer": "approve"}, "run_answer"},
	} {
		if got := call(t, c, bad.tool, bad.in, nil); !strings.Contains(got, bad.want) {
			t.Errorf("%s %v: got %q, want %q", bad.tool, bad.in, got, bad.want)
		}
	}
}

func TestRunsOutliveTheServer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c, cmd := h.client(nil)
	id := start(t, c, "hello", map[string]any{"conversation": true})
	waits := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_wait", Arguments: map[string]any{"run_ids": []string{id}}})
		waits <- err
	}()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err == nil {
		t.Error("the wait has ended without an error")
	}
	again, _ := h.client(nil)
	must(t, again, "run_send", map[string]any{"run_id": id, "end": true}, nil)
	var waited states
	must(t, again, "run_wait", map[string]any{"run_ids": []string{id}}, &waited)
	if waited.Runs[0].State != "completed" {
		t.Errorf("the run is %+v", waited.Runs[0])
	}
}

// inside is the environment of a process of a run.
func inside(id string) []string { return []string{"AMUX_RUN_ID=" + id} }

func TestScopeInsideARun(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk := func(env []string, name string, more ...string) string {
		return h.Sh(env, append([]string{h.Amux, "run", "demo", "-i", "-d", "--name", name, "hello"}, more...)...)
	}
	me, other := talk(nil, "me"), talk(nil, "other")
	c, _ := h.client(inside(me))
	child := start(t, c, "hello", map[string]any{"conversation": true, "name": "child", "approve": "deny"})
	grand := talk(inside(child), "grand")

	ids := func(c *mcp.ClientSession) []string {
		var all states
		must(t, c, "run_list", map[string]any{"all": true}, &all)
		var ids []string
		for _, r := range all.Runs {
			ids = append(ids, r.RunID)
		}
		slices.Sort(ids)
		return ids
	}
	below := []string{child, grand}
	slices.Sort(below)
	if got := ids(c); !slices.Equal(got, below) {
		t.Errorf("the run sees %q, want %q", got, below)
	}
	for _, ref := range []string{me, other, "me", "other", other[:20], other[20:], "0", "", "all", "../" + other} {
		for tool, in := range map[string]map[string]any{
			"run_read": {"run_id": ref}, "run_diff": {"run_id": ref}, "run_send": {"run_id": ref, "prompt": "x"},
			"run_stop": {"run_ids": []string{child, ref}, "kill": true}, "run_wait": {"run_ids": []string{ref}},
		} {
			got := call(t, c, tool, in, nil)
			if !strings.Contains(got, `"VALIDATION_ERROR"`) || ref != me && strings.Contains(got, me) || ref != other && strings.Contains(got, other[:20]) && !strings.Contains(ref, other[:20]) {
				t.Errorf("%s of %q: %q", tool, ref, got)
			}
		}
		if out, err := h.Try(inside(me), h.Amux, "stop", ref); err == nil {
			t.Errorf("amux stop %q: %s", ref, out)
		}
		if out, err := h.Try(inside(me), h.Amux, "rm", "--force", ref); err == nil {
			t.Errorf("amux rm %q: %s", ref, out)
		}
	}
	live := strings.Fields(h.Sh(nil, h.Amux, "ps", "-q"))
	for _, id := range []string{me, other, child, grand} {
		if !slices.ContainsFunc(live, func(l string) bool { return l == id }) {
			t.Errorf("%s was stopped", id)
		}
	}
	seen := strings.Fields(h.Sh(inside(me), h.Amux, "ps", "-q"))
	slices.Sort(seen)
	if !slices.Equal(seen, below) {
		t.Errorf("amux ps inside shows %q, want %q", seen, below)
	}
	// What an agent could type gives it nothing; what the user wrote does.
	if out, err := h.Try(inside(me), h.Amux, "mcp", "--grant", "all"); err == nil || !strings.Contains(out, "inside a run") {
		t.Errorf("--grant inside a run: %v, %s", err, out)
	}
	if out, err := h.Try(inside("01M888J4V76P44W4R5M5EHTNQM"), h.Amux, "mcp"); err == nil || !strings.Contains(out, "no such run") {
		t.Errorf("an unknown run: %v, %s", err, out)
	}
	if got := call(t, c, "run_start", map[string]any{"agent": "demo", "prompt": "x", "approve": "auto"}, nil); !strings.Contains(got, "more than this run may") {
		t.Errorf("more permission than the caller's: %q", got)
	}
	config := strings.TrimSpace(h.Sh(nil, h.Amux, "config", "path"))
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[mcp]\ngrant = [\""+other+"\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	granted, _ := h.client(inside(me))
	want := append([]string{other}, below...)
	slices.Sort(want)
	if got := ids(granted); !slices.Equal(got, want) {
		t.Errorf("with a grant the run sees %q, want %q", got, want)
	}
	outside, _ := h.client(nil, "--grant", "all")
	if got := ids(outside); len(got) != 4 {
		t.Errorf("with all granted, a client sees %q", got)
	}
}

// TestAncestryWins has a child of a marked process change its mark.
func TestAncestryWins(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process the environment of those above it")
	}
	h := newHome(t)
	me := h.Sh(nil, h.Amux, "run", "demo", "-i", "-d", "hello")
	other := h.Sh(nil, h.Amux, "run", "demo", "-i", "-d", "hello")
	for _, forge := range []string{"env -u AMUX_RUN_ID", "env AMUX_RUN_ID=" + other, "env AMUX_RUN_ID="} {
		if out := h.Sh(inside(me), "sh", "-c", forge+` "$0" ps -q; true`, h.Amux); out != "" {
			t.Errorf("%s: sees %q", forge, out)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	me := h.Sh(nil, h.Amux, "run", "demo", "-d", "--approve", "ask", "[approve]")
	config := strings.TrimSpace(h.Sh(nil, h.Amux, "config", "path"))
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[mcp]\ngrant = [\"all\"]\nanswer = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := h.client(inside(me))
	child := start(t, c, "[approve]", nil)
	var waited states
	must(t, c, "run_wait", map[string]any{"run_ids": []string{child, me}}, &waited)
	if waited.Runs[0].State != "waiting" || waited.Runs[0].Questions != 1 || waited.Runs[1].Questions != 1 || waited.TimedOut {
		t.Fatalf("run_wait returns %+v", waited)
	}
	var open struct {
		Questions []struct {
			RunID string `json:"run_id"`
			ID    string `json:"interaction_id"`
		} `json:"questions"`
	}
	must(t, c, "run_questions", nil, &open)
	if len(open.Questions) != 2 {
		t.Errorf("%d questions are open", len(open.Questions))
	}
	for _, q := range open.Questions {
		problem := call(t, c, "run_answer", map[string]any{"run_id": q.RunID, "interaction_id": q.ID, "answer": "approve"}, nil)
		if own := q.RunID == me; own != strings.Contains(problem, "somebody else answers it") || !own && problem != "" {
			t.Errorf("answer for %s: %q", q.RunID, problem)
		}
	}
	must(t, c, "run_wait", map[string]any{"run_ids": []string{child}}, &waited)
	if waited.Runs[0].State != "completed" {
		t.Errorf("the approved run is %+v", waited.Runs[0])
	}
	if out, err := h.Try(inside(me), h.Amux, "approve", me); err == nil {
		t.Errorf("a run approved its own request: %s", out)
	}
	must(t, c, "run_wait", map[string]any{"run_ids": []string{me}}, &waited)
	if waited.Runs[0].State != "waiting" {
		t.Errorf("the caller is %+v", waited.Runs[0])
	}
}
