//go:build unix

package acp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/internal/test/home"
)

func TestMain(m *testing.M) { agents.Run(m) }

// editor is a client of one amux acp.
type editor struct {
	*acp.ClientSideConnection
	t   *testing.T
	cmd *exec.Cmd

	mu      sync.Mutex
	updates []acp.SessionUpdate
	// decide answers requests for permission; nil: never.
	decide func(acp.RequestPermissionRequest) acp.PermissionOptionId
	asked  chan acp.RequestPermissionRequest
	gone   chan struct{} // one for each request that amux has withdrawn
}

func open(t *testing.T, h *home.Home, decide func(acp.RequestPermissionRequest) acp.PermissionOptionId, args ...string) *editor {
	t.Helper()
	e := &editor{t: t, decide: decide, asked: make(chan acp.RequestPermissionRequest, 100), gone: make(chan struct{}, 100)}
	e.cmd = exec.Command(h.Amux, append([]string{"acp", "--agent", "demo"}, args...)...)
	e.cmd.Dir, e.cmd.Env, e.cmd.Stderr = h.Dir, h.Env, os.Stderr
	in, err := e.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	e.ClientSideConnection = acp.NewClientSideConnection(e, in, out)
	e.SetLogger(slog.New(slog.DiscardHandler))
	got, err := e.Initialize(e.patient(), acp.InitializeRequest{ProtocolVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got.ProtocolVersion != 1 || !got.AgentCapabilities.LoadSession || got.AgentCapabilities.SessionCapabilities.Resume == nil {
		t.Errorf("it says %+v", got)
	}
	return e
}

// patient is a context for one request.
func (e *editor) patient() context.Context {
	ctx, cancel := context.WithTimeout(e.t.Context(), home.Patience)
	e.t.Cleanup(cancel)
	return ctx
}

func (e *editor) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func (e *editor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n.Update)
	return nil
}

func (e *editor) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.asked <- r
	if e.decide == nil {
		<-ctx.Done()
		e.gone <- struct{}{}
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(e.decide(r))}, nil
}

var errNot = errors.New("this editor cannot do that")

func (e *editor) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, errNot
}

func (e *editor) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, errNot
}

func (e *editor) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, errNot
}

func (e *editor) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, errNot
}

func (e *editor) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, errNot
}

func (e *editor) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, errNot
}

func (e *editor) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, errNot
}

// seen are the texts of the updates so far, by kind, and how often a tool's call had each
// status.
func (e *editor) seen() (agent, user string, status map[acp.ToolCallStatus]int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	status = map[acp.ToolCallStatus]int{}
	for _, u := range e.updates {
		switch {
		case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
			agent += u.AgentMessageChunk.Content.Text.Text
		case u.UserMessageChunk != nil:
			user += u.UserMessageChunk.Content.Text.Text
		case u.ToolCall != nil:
			status[u.ToolCall.Status]++
		case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
			status[*u.ToolCallUpdate.Status]++
		}
	}
	return agent, user, status
}

// begin opens a session in the user's folder.
func (e *editor) begin(h *home.Home) acp.SessionId {
	e.t.Helper()
	s, err := e.NewSession(e.patient(), acp.NewSessionRequest{Cwd: h.Dir, McpServers: []acp.McpServer{}})
	if err != nil {
		e.t.Fatal(err)
	}
	return s.SessionId
}

// say sends a prompt and waits for the end of its turn.
func (e *editor) say(id acp.SessionId, text string) acp.StopReason {
	e.t.Helper()
	got, err := e.Prompt(e.patient(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil {
		e.t.Fatal(err)
	}
	return got.StopReason
}

func user(t *testing.T) *home.Home {
	t.Helper()
	h := home.New(t)
	h.Serve()
	return h
}

func allow(acp.RequestPermissionRequest) acp.PermissionOptionId { return "allow" }

// A session is a run, which a second editor sees as the first one did.
func TestSession(t *testing.T) {
	t.Parallel()
	h := user(t)
	one := open(t, h, nil)
	id := one.begin(h)
	if reason := one.say(id, "hello"); reason != acp.StopReasonEndTurn {
		t.Errorf("the turn ends with %s", reason)
	}
	agent, said, status := one.seen()
	if !strings.Contains(agent, "hello") || said != "" || status[acp.ToolCallStatusCompleted] != 3 || status[acp.ToolCallStatusPending] != 3 {
		t.Errorf("the agent says %q, the user %q, tools %v", agent, said, status)
	}
	one.say(id, "[say:again]")
	whole, _, _ := one.seen()
	two := open(t, h, nil)
	if _, err := two.LoadSession(two.patient(), acp.LoadSessionRequest{SessionId: id, Cwd: h.Dir, McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if agent, said, _ := two.seen(); agent != whole || said != "hello[say:again]" {
		t.Errorf("loaded, the agent says\n%q, not\n%q, the user %q", agent, whole, said)
	}
	three := open(t, h, nil)
	if _, err := three.ResumeSession(three.patient(), acp.ResumeSessionRequest{SessionId: id, Cwd: h.Dir}); err != nil {
		t.Fatal(err)
	}
	two.say(id, "[say:third]")
	h.Until("all see it", func() bool {
		a, _, _ := one.seen()
		c, said, _ := three.seen()
		return strings.Contains(a, "third") && strings.HasPrefix(c, "third") && said == "[say:third]"
	})
	list, err := three.ListSessions(three.patient(), acp.ListSessionsRequest{Cwd: &h.Dir})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || list.Sessions[0].Title == nil || *list.Sessions[0].Title != "hello" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, err := one.CloseSession(one.patient(), acp.CloseSessionRequest{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	h.Sh(nil, h.Amux, "wait", string(id))
	// A session whose run has ended can still be read.
	four := open(t, h, nil)
	if _, err := four.LoadSession(four.patient(), acp.LoadSessionRequest{SessionId: id, Cwd: h.Dir, McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if agent, _, _ := four.seen(); !strings.Contains(agent, "third") {
		t.Errorf("after its end it says %q", agent)
	}
}

// What the agent asks is answered by the editor, and of several answers one counts.
func TestPermission(t *testing.T) {
	t.Parallel()
	h := user(t)
	answer := acp.PermissionOptionId("allow")
	e := open(t, h, func(acp.RequestPermissionRequest) acp.PermissionOptionId { return answer })
	id := e.begin(h)
	e.say(id, "[approve][say:done]")
	r := <-e.asked
	if len(r.Options) != 3 || r.ToolCall.Title == nil || !strings.Contains(*r.ToolCall.Title, "approved.txt") || r.ToolCall.Kind == nil || *r.ToolCall.Kind != acp.ToolKindEdit {
		t.Errorf("it asks %+v", r)
	}
	answer = "reject"
	e.say(id, "[approve]")
	answer = "always"
	e.say(id, "[approve][approve]")
	e.say(id, "[approve]")
	if n := len(e.asked); n != 2 {
		t.Errorf("it has asked %d times more", n)
	}
	_, _, status := e.seen()
	if status[acp.ToolCallStatusFailed] != 1 || status[acp.ToolCallStatusCompleted] != 4 {
		t.Errorf("tools are %v", status)
	}
	// Somebody else is quicker.
	slow := open(t, h, nil)
	id = slow.begin(h)
	done := make(chan acp.StopReason, 1)
	go func() { done <- slow.say(id, "[approve][say:bye]") }()
	<-slow.asked
	h.Sh(nil, h.Amux, "approve", string(id))
	<-slow.gone
	if reason := <-done; reason != acp.StopReasonEndTurn {
		t.Errorf("the turn ends with %s", reason)
	}
}

// The editor dies while it is asked. The next one is asked the same, and one answer counts.
func TestEditorKilled(t *testing.T) {
	t.Parallel()
	h := user(t)
	first := open(t, h, nil)
	id := first.begin(h)
	go first.Prompt(first.patient(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("[approve][say:after]")}})
	before := <-first.asked
	first.kill()
	next := open(t, h, allow)
	other := open(t, h, allow)
	for _, e := range []*editor{next, other} {
		if _, err := e.LoadSession(e.patient(), acp.LoadSessionRequest{SessionId: id, Cwd: h.Dir, McpServers: []acp.McpServer{}}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case r := <-next.asked:
		if r.ToolCall.ToolCallId != before.ToolCall.ToolCallId {
			t.Errorf("it asks about %s, not %s", r.ToolCall.ToolCallId, before.ToolCall.ToolCallId)
		}
	case r := <-other.asked:
		if r.ToolCall.ToolCallId != before.ToolCall.ToolCallId {
			t.Errorf("it asks about %s, not %s", r.ToolCall.ToolCallId, before.ToolCall.ToolCallId)
		}
	case <-time.After(home.Patience):
		t.Fatal("nobody is asked")
	}
	h.Until("the turn ends", func() bool {
		a, _, _ := next.seen()
		b, _, _ := other.seen()
		return strings.Contains(a, "after") && strings.Contains(b, "after")
	})
	if n := strings.Count(h.Sh(nil, h.Amux, "logs", "--json", string(id)), `"type":"approval_granted"`); n != 1 {
		t.Errorf("%d answers count", n)
	}
	if reason := next.say(id, "[say:on]"); reason != acp.StopReasonEndTurn {
		t.Errorf("the next turn ends with %s", reason)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	h := user(t)
	e := open(t, h, nil)
	id := e.begin(h)
	done := make(chan acp.StopReason, 1)
	go func() { done <- e.say(id, "[say:begun][sleep:600]") }()
	h.Until("the turn has begun", func() bool { agent, _, _ := e.seen(); return strings.Contains(agent, "begun") })
	if err := e.Cancel(e.patient(), acp.CancelNotification{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if reason := <-done; reason != acp.StopReasonCancelled {
		t.Errorf("the turn ends with %s", reason)
	}
	if reason := e.say(id, "[say:on]"); reason != acp.StopReasonEndTurn {
		t.Errorf("the next turn ends with %s", reason)
	}
}

// A question that wants a text ends the turn for the editor: the next prompt is the answer.
func TestQuestion(t *testing.T) {
	t.Parallel()
	h := user(t)
	e := open(t, h, nil)
	id := e.begin(h)
	if reason := e.say(id, "[ask:which colour?]"); reason != acp.StopReasonEndTurn {
		t.Errorf("the turn ends with %s", reason)
	}
	if agent, _, _ := e.seen(); !strings.Contains(agent, "which colour?") {
		t.Errorf("it says %q", agent)
	}
	e.say(id, "blue")
	if agent, _, _ := e.seen(); !strings.Contains(agent, "You answered: blue") {
		t.Errorf("it says %q", agent)
	}
}

// The server of the runs dies in the middle of a turn: another one goes on.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	h := user(t)
	e := open(t, h, nil)
	id := e.begin(h)
	done := make(chan acp.StopReason, 1)
	go func() { done <- e.say(id, "[say:one]"+strings.Repeat("[lines:5][sleep:0.05]", 20)+"[say:last]") }()
	h.Until("the turn has begun", func() bool { agent, _, _ := e.seen(); return strings.Contains(agent, "one") })
	h.KillServe()
	if reason := <-done; reason != acp.StopReasonEndTurn {
		t.Errorf("the turn ends with %s", reason)
	}
	agent, _, _ := e.seen()
	if n := strings.Count(agent, "line 5\n"); n != 20 || strings.Count(agent, "last") != 1 {
		t.Errorf("%d of 20 lines came: %q", n, agent)
	}
}

// Who answers is a mode of the session, which an editor changes, and others see.
func TestMode(t *testing.T) {
	t.Parallel()
	h := user(t)
	e := open(t, h, allow)
	s, err := e.NewSession(e.patient(), acp.NewSessionRequest{Cwd: h.Dir, McpServers: []acp.McpServer{}})
	if err != nil || s.Modes == nil || s.Modes.CurrentModeId != "ask" || len(s.Modes.AvailableModes) != 3 {
		t.Fatalf("the modes are %+v, %v", s.Modes, err)
	}
	id := s.SessionId
	set := func(mode acp.SessionModeId) error {
		_, err := e.SetSessionMode(e.patient(), acp.SetSessionModeRequest{SessionId: id, ModeId: mode})
		return err
	}
	if err := set("rules"); err == nil {
		t.Error("a mode that is not offered is taken")
	}
	if err := set("auto"); err != nil {
		t.Fatal(err)
	}
	e.say(id, "[approve]")
	if err := set("deny"); err != nil {
		t.Fatal(err)
	}
	e.say(id, "[approve]")
	if n := len(e.asked); n != 0 {
		t.Errorf("it has asked %d times", n)
	}
	_, _, status := e.seen()
	if status[acp.ToolCallStatusFailed] != 1 || status[acp.ToolCallStatusCompleted] != 1 {
		t.Errorf("tools are %v", status)
	}
	e.mu.Lock()
	var told []string
	for _, u := range e.updates {
		switch {
		case u.CurrentModeUpdate != nil:
			told = append(told, string(u.CurrentModeUpdate.CurrentModeId))
		case u.ConfigOptionUpdate != nil:
			told = append(told, "option "+string(u.ConfigOptionUpdate.ConfigOptions[0].Select.CurrentValue))
		}
	}
	e.mu.Unlock()
	if want := []string{"auto", "option auto", "deny", "option deny"}; !slices.Equal(told, want) {
		t.Errorf("it was told %q", told)
	}
	// The session goes on in another run, with the mode that it had.
	next := open(t, h, allow)
	resumed, err := next.ResumeSession(next.patient(), acp.ResumeSessionRequest{SessionId: id, Cwd: h.Dir})
	if err != nil || resumed.Modes == nil || resumed.Modes.CurrentModeId != "deny" {
		t.Errorf("resumed, the modes are %+v, %v", resumed.Modes, err)
	}
	// What was started to ask nothing cannot change.
	fixed := open(t, h, nil, "--approve", "auto")
	if s, err := fixed.NewSession(fixed.patient(), acp.NewSessionRequest{Cwd: h.Dir, McpServers: []acp.McpServer{}}); err != nil || s.Modes != nil {
		t.Errorf("with --approve auto the modes are %+v, %v", s.Modes, err)
	} else if _, err := fixed.SetSessionMode(fixed.patient(), acp.SetSessionModeRequest{SessionId: s.SessionId, ModeId: "ask"}); err == nil {
		t.Error("with --approve auto a mode is taken")
	}
}

// After the end of its run a session goes on in another one, with the mode that is chosen meanwhile,
// and is still one session.
func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	plugins := t.TempDir()
	if err := agents.Install(plugins, agents.Resumer, agents.Healthy); err != nil {
		t.Fatal(err)
	}
	args := []string{"--agent", agents.Resumer, "--plugin", agents.Resumer + "=" + filepath.Join(plugins, agents.Resumer)}
	e := open(t, h, allow, args...)
	s, err := e.NewSession(e.patient(), acp.NewSessionRequest{Cwd: h.Dir, McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	id := s.SessionId
	e.say(id, "say first\nask before\nexit 0")
	<-e.asked
	h.Sh(nil, h.Amux, "wait", string(id))
	if _, err := e.SetSessionMode(e.patient(), acp.SetSessionModeRequest{SessionId: id, ModeId: "deny"}); err != nil {
		t.Fatal(err)
	}
	loaded, err := e.LoadSession(e.patient(), acp.LoadSessionRequest{SessionId: id, Cwd: h.Dir, McpServers: []acp.McpServer{}})
	if err != nil || loaded.Modes == nil || loaded.Modes.CurrentModeId != "deny" {
		t.Errorf("loaded, the modes are %+v, %v", loaded.Modes, err)
	}
	e.say(id, "sleep 0.5\nsay second\nask after\nexit 0")
	if len(e.asked) != 0 {
		t.Errorf("it asks %+v", <-e.asked)
	}
	runs := strings.Split(h.Sh(nil, h.Amux, "ps", "-a", "-q"), "\n")
	if len(runs) != 2 {
		t.Fatalf("the runs are %q", runs)
	}
	if log := h.Sh(nil, h.Amux, "logs", runs[0], "--json"); strings.Count(log, `"type":"approval_denied"`) != 1 {
		t.Errorf("nothing is denied in\n%s", log)
	}
	h.Sh(nil, h.Amux, "wait", runs[0])
	e.say(id, "say third")
	all, _, _ := e.seen()

	two := open(t, h, allow, args...)
	list, err := two.ListSessions(two.patient(), acp.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id {
		t.Errorf("the list is %+v, %v", list.Sessions, err)
	}
	if _, err := two.LoadSession(two.patient(), acp.LoadSessionRequest{SessionId: id, Cwd: h.Dir, McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if agent, said, _ := two.seen(); !strings.HasSuffix(all, agent) || strings.Count(agent, "first")*strings.Count(agent, "second")*strings.Count(agent, "third") != 1 || !strings.Contains(said, "say third") {
		t.Errorf("loaded, the agent says %q, not %q, the user %q", agent, all, said)
	}
	two.say(id, "say fourth")
	h.Until("the first editor sees it", func() bool {
		agent, _, _ := e.seen()
		return strings.HasSuffix(agent, "fourth\n")
	})
	if n := len(strings.Split(h.Sh(nil, h.Amux, "ps", "-a", "-q"), "\n")); n != 3 {
		t.Errorf("there are %d runs", n)
	}
	three := open(t, h, allow, args...)
	if _, err := three.ResumeSession(three.patient(), acp.ResumeSessionRequest{SessionId: id, Cwd: h.Dir}); err != nil {
		t.Fatal(err)
	}
	three.say(id, "say fifth")
	if agent, _, _ := three.seen(); strings.Contains(agent, "fourth") || strings.Count(agent, "fifth") != 1 {
		t.Errorf("resumed, the agent says %q", agent)
	}
	// The SDK has no session/delete.
	plain := exec.Command(h.Amux, append([]string{"acp"}, args...)...)
	plain.Dir, plain.Env = h.Dir, h.Env
	in, err := plain.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := plain.StdoutPipe()
	if err == nil {
		err = plain.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"session/delete","params":{"sessionId":%q}}`+"\n", id)
	answer, err := bufio.NewReader(out).ReadString('\n')
	if in.Close(); err != nil || strings.Contains(answer, "error") {
		t.Errorf("session/delete: %q, %v", answer, err)
	}
	_ = plain.Wait()
	if left := h.Sh(nil, h.Amux, "ps", "-a", "-q"); left != "" {
		t.Errorf("deleted, there are the runs %q", left)
	}
}

// A prompt that is sent while somebody else's is worked on has its own end.
func TestTurnOfSomebodyElse(t *testing.T) {
	t.Parallel()
	h := user(t)
	e := open(t, h, nil)
	id := e.begin(h)
	e.say(id, "[say:first]")
	for _, resumed := range []bool{false, true} {
		h.Sh(nil, h.Amux, "send", string(id), "[say:theirs][sleep:1]")
		h.Until("their turn has begun", func() bool {
			agent, _, _ := e.seen()
			return strings.HasSuffix(strings.TrimSuffix(agent, "\n"), "theirs")
		})
		mine := e
		if resumed {
			mine = open(t, h, nil)
			if _, err := mine.ResumeSession(mine.patient(), acp.ResumeSessionRequest{SessionId: id, Cwd: h.Dir}); err != nil {
				t.Fatal(err)
			}
		}
		if reason := mine.say(id, "[sleep:1][say:mine]"); reason != acp.StopReasonEndTurn {
			t.Errorf("the turn ends with %s", reason)
		}
		if agent, _, _ := mine.seen(); !strings.Contains(agent, "mine") {
			t.Errorf("at the end of the turn it has said %q", agent)
		}
		h.Until("all see it", func() bool {
			agent, _, _ := e.seen()
			return !strings.HasSuffix(strings.TrimSuffix(agent, "\n"), "theirs")
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := user(t)
	for _, args := range [][]string{{"acp", "--agent", "nope"}, {"acp", "--agent", "demo", "--approve", "perhaps"}, {"acp", "x"}} {
		if out, err := h.Try(nil, append([]string{h.Amux}, args...)...); err == nil || !strings.HasPrefix(out, "amux: error: ") {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	e := open(t, h, nil)
	for _, in := range []acp.NewSessionRequest{
		{Cwd: "relative", McpServers: []acp.McpServer{}}, {Cwd: "/no/such/folder", McpServers: []acp.McpServer{}},
		{Cwd: h.Dir, McpServers: []acp.McpServer{}, AdditionalDirectories: []string{"relative"}},
	} {
		if s, err := e.NewSession(e.patient(), in); err == nil {
			t.Errorf("%+v gives session %s", in, s.SessionId)
		}
	}
	for _, id := range []acp.SessionId{"", "../../etc", "nope"} {
		if _, err := e.LoadSession(e.patient(), acp.LoadSessionRequest{SessionId: id, Cwd: h.Dir, McpServers: []acp.McpServer{}}); err == nil {
			t.Errorf("session %q is loaded", id)
		}
		if _, err := e.Prompt(e.patient(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("x")}}); err == nil {
			t.Errorf("session %q takes a prompt", id)
		}
	}
	id := e.begin(h)
	for _, blocks := range [][]acp.ContentBlock{{}, {acp.TextBlock(" ")}, {acp.ImageBlock("AAAA", "image/png")}} {
		if _, err := e.Prompt(e.patient(), acp.PromptRequest{SessionId: id, Prompt: blocks}); err == nil {
			t.Errorf("%+v is a prompt", blocks)
		}
	}
	if _, err := e.Prompt(e.patient(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{
		acp.TextBlock("look at "), acp.ResourceLinkBlock("a.go", "file:///src/a.go"),
		acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: "file:///b.go", Text: "package b"}}),
	}}); err != nil {
		t.Fatal(err)
	}
	if logs := h.Sh(nil, h.Amux, "logs", "--json", string(id)); !strings.Contains(logs, `look at /src/a.go\n\n/b.go:\n`) {
		t.Errorf("the prompt is not in %s", logs)
	}
	if runs := strings.Fields(h.Sh(nil, h.Amux, "ps", "-aq")); len(runs) != 1 {
		t.Errorf("there are the runs %q", runs)
	}
	// What is no JSON, and what has no end, leaves nothing behind.
	cmd := exec.Command(h.Amux, "acp", "--agent", "demo")
	cmd.Dir, cmd.Env = h.Dir, h.Env
	cmd.Stdin = io.MultiReader(strings.NewReader("{\n[1,2]\nnull\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}\n"), strings.NewReader(strings.Repeat("a", 32<<20)))
	ended := make(chan error, 1)
	go func() { _, err := cmd.Output(); ended <- err }()
	select {
	case <-ended:
	case <-time.After(home.Patience):
		_ = cmd.Process.Kill()
		t.Error("it does not end")
	}
}
