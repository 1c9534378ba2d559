//go:build unix

package http

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/amux-dev/amux/internal/test/home"
)

var update = flag.Bool("update", false, "write docs/schema/openapi.json")

// The document in docs is what the server says of itself.
func TestDocument(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("../../bin/amux-api", "openapi").Output()
	if err != nil {
		t.Fatalf("%v (make build)", err)
	}
	path := filepath.Join("..", "..", "docs", "schema", "openapi.json")
	if *update {
		if err := os.WriteFile(path, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(out, want) {
		t.Errorf("docs/schema/openapi.json is not up to date: make docs (%v)", err)
	}
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string
			Responses   map[string]struct{ Description string }
			Parameters  []struct{ Name, Description string }
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || len(doc.Paths) < 15 {
		t.Errorf("OpenAPI %s with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || strings.HasSuffix(op.Summary, ".") {
				t.Errorf("%s %s: id %q, summary %q", method, path, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
			for _, status := range []string{"401", "403", "404", "421"} {
				if _, ok := op.Responses[status]; !ok {
					t.Errorf("%s %s: no %s", method, path, status)
				}
			}
			for status, r := range op.Responses {
				if r.Description == "" {
					t.Errorf("%s %s: %s has no description", method, path, status)
				}
			}
		}
	}
}

// Everything that a run can do.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := start(t)
	first := s.begin("hello", map[string]any{"name": "first", "tags": []string{"nightly"}})
	if first.State == "" || first.Prompt != "hello" {
		t.Errorf("a new run is %+v", first)
	}
	lines, ids, err := s.watch(first.ID, "", never)
	if err != nil {
		t.Fatal(err)
	}
	stored := s.logs(first.ID)
	if !slices.Equal(lines, stored) {
		t.Errorf("%d events were sent, %d are stored", len(lines), len(stored))
	}
	for i, id := range ids {
		var e struct{ Seq json.Number }
		if err := json.Unmarshal([]byte(lines[i]), &e); err != nil || e.Seq.String() != id {
			t.Errorf("event %d has the id %s: %s", i+1, id, lines[i])
		}
	}
	if status, _ := s.do(func() *http.Request {
		r := s.request("GET", "/v1/runs/first/events", nil)
		r.Header.Set("Last-Event-ID", ids[len(ids)-1])
		return r
	}(), nil); status != http.StatusNoContent {
		t.Errorf("behind the last event: %d", status)
	}
	_, text := s.do(s.request("GET", "/v1/runs/first/log?from=3&follow=false", nil), nil)
	if text != strings.Join(stored[2:], "\n")+"\n" {
		t.Errorf("the log from 3 is\n%s", text)
	}
	_, text = s.do(s.request("GET", "/v1/runs/first/output?lines=2", nil), nil)
	if want := s.Sh(nil, s.Amux, "logs", "--lines", "2", first.ID); strings.TrimSpace(text) != want || want == "" {
		t.Errorf("the output is %q, want %q", text, want)
	}
	var list struct {
		Runs []run
		More bool
	}
	s.must("GET", "/v1/runs?all=true&tag=nightly&agent=demo&limit=1", nil, &list)
	if len(list.Runs) != 1 || list.Runs[0].ID != first.ID || list.More || list.Runs[0].State != "completed" {
		t.Errorf("the list is %+v", list)
	}
	// A question is answered once.
	asks := s.begin("[approve]", nil)
	question := s.ask(asks.ID)
	var waits run
	if s.must("GET", "/v1/runs/"+asks.ID+"/wait?questions=true&timeout=600", nil, &waits); waits.State != "waiting" {
		t.Errorf("a run that asks is %+v", waits)
	}
	var all struct {
		Questions []struct {
			RunID string `json:"run_id"`
			Event struct{ Type string }
		}
	}
	if s.must("GET", "/v1/questions", nil, &all); len(all.Questions) != 1 || all.Questions[0].RunID != asks.ID || all.Questions[0].Event.Type != "approval_request" {
		t.Errorf("questions are %+v", all)
	}
	answer := "/v1/runs/" + asks.ID + "/questions/" + question
	for _, bad := range []map[string]any{{"answer": "perhaps"}, {}, {"answer": "deny", "allow_rules": []string{"x"}}, {"answer": "approve", "allow_rules": []string{"("}}} {
		if status, text := s.do(s.request("POST", answer, bad), nil); status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", bad, status, text)
		}
	}
	s.must("POST", answer, map[string]any{"answer": "approve"}, nil)
	var ended run
	if s.must("GET", "/v1/runs/"+asks.ID+"/wait", nil, &ended); ended.State != "completed" {
		t.Errorf("the approved run is %+v", ended)
	}
	if status, _ := s.do(s.request("POST", answer, map[string]any{"answer": "approve"}), nil); status != http.StatusConflict && status != http.StatusNotFound {
		t.Errorf("a second answer: %d", status)
	}
	// A conversation.
	talk := s.begin("hello", map[string]any{"conversation": true})
	s.must("POST", "/v1/runs/"+talk.ID+"/pause", nil, nil)
	s.must("POST", "/v1/runs/"+talk.ID+"/resume", nil, nil)
	s.must("POST", "/v1/runs/"+talk.ID+"/prompts", map[string]any{"prompt": "again", "end": true}, nil)
	if s.must("GET", "/v1/runs/"+talk.ID+"/wait?timeout=100", nil, &ended); ended.State != "completed" {
		t.Errorf("the conversation is %+v", ended)
	}
	for verb, state := range map[string]string{"stop": "canceled", "kill": "canceled"} {
		long := s.begin("[sleep:600]", nil)
		s.must("POST", "/v1/runs/"+long.ID+"/"+verb, nil, nil)
		if s.must("GET", "/v1/runs/"+long.ID+"/wait?timeout=100", nil, &ended); ended.State != state {
			t.Errorf("after %s it is %+v", verb, ended)
		}
	}
	if s.must("DELETE", "/v1/runs/"+talk.ID, nil, nil); strings.Contains(s.Sh(nil, s.Amux, "ps", "-aq"), talk.ID) {
		t.Error("a deleted run is still there")
	}
	var usage struct{ Agents []struct{ Runs int } }
	if s.must("GET", "/v1/usage", nil, &usage); len(usage.Agents) != 1 || usage.Agents[0].Runs < 3 {
		t.Errorf("usage is %+v", usage)
	}
	var agents struct{ Agents []struct{ Agent string } }
	if s.must("GET", "/v1/agents", nil, &agents); len(agents.Agents) < 10 {
		t.Errorf("agents are %+v", agents)
	}
	// Who answers changes while a run goes on.
	open := s.begin("[approve][sleep:600]", nil)
	s.ask(open.ID)
	s.must("PUT", "/v1/runs/"+open.ID+"/approve", map[string]any{"approve": "deny"}, nil)
	s.Until("the host denies what waited", func() bool { return strings.Contains(strings.Join(s.logs(open.ID), ""), `"type":"approval_denied"`) })
	var agent struct {
		Agent        struct{ Models []struct{ ID string } }
		Capabilities []string
	}
	if s.must("GET", "/v1/agents/demo", nil, &agent); len(agent.Agent.Models) != 2 || !slices.Contains(agent.Capabilities, "set_model") || slices.Contains(agent.Capabilities, "fork") {
		t.Errorf("the agent is %+v", agent)
	}
	for _, bad := range []struct {
		method, path string
		body         any
		status       int
	}{
		{"GET", "/v1/runs/nope", nil, 404}, {"GET", "/v1/runs/first/diff", nil, 409}, {"GET", "/v1/runs?limit=0", nil, 400}, {"GET", "/v1/runs?x=1", nil, 400},
		{"GET", "/v1/agents/demo/sessions", nil, 400}, {"GET", "/v1/agents/nobody", nil, 400}, {"GET", "/v1/nothing", nil, 404}, {"GET", "/v1/runs/first/screen", nil, 426},
		{"POST", "/v1/runs", map[string]any{"agent": "nope", "prompt": "x", "cwd": s.Dir}, 400},
		{"POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": "x", "cwd": s.User, "sandbox": true}, 400},
		{"POST", "/v1/runs", map[string]any{"agent": "demo", "cwd": s.Dir}, 400},
		{"POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": "x", "cwd": "relative"}, 400},
		{"POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": "x", "cwd": "/no/such/folder"}, 400},
		{"POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": "x", "cwd": s.Dir, "approve": "auto"}, 403},
		{"POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": "x", "cwd": s.Dir, "allow": []string{"*"}}, 403},
		{"POST", "/v1/runs/first/prompts", map[string]any{"prompt": "x"}, 409},
		{"PUT", "/v1/runs/first/approve", map[string]any{"approve": "ask"}, 409},
		{"PUT", "/v1/runs/" + open.ID + "/approve", map[string]any{"approve": "auto"}, 403},
		{"PUT", "/v1/runs/" + open.ID + "/approve", map[string]any{"approve": "perhaps"}, 400},
	} {
		if status, text := s.do(s.request(bad.method, bad.path, bad.body), nil); status != bad.status || !strings.Contains(text, `"code":"`) || !strings.Contains(text, `"message":"`) {
			t.Errorf("%s %s %v: %d, want %d: %s", bad.method, bad.path, bad.body, status, bad.status, text)
		}
	}
}

// [http] bounds what is started.
func TestBounds(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	allowed := filepath.Join(h.User, "allowed")
	for _, dir := range []string{filepath.Join(h.User, ".agent-mux"), allowed} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.Dir, filepath.Join(allowed, "link")); err != nil {
		t.Fatal(err)
	}
	config := "[http]\nagents = [\"demo\"]\nfolders = [\"" + allowed + "\"]\napprove = \"auto\"\n"
	if err := os.WriteFile(filepath.Join(h.User, ".agent-mux", "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Serve()
	s := &server{Home: h}
	s.open("127.0.0.1:0")
	t.Cleanup(s.kill)
	s.begin("hello", map[string]any{"cwd": allowed, "approve": "auto"})
	for _, in := range []map[string]any{
		{"agent": "claude", "prompt": "x", "cwd": allowed}, {"prompt": "x", "cwd": allowed}, {"agent": "demo", "prompt": "x", "cwd": h.Dir},
		{"agent": "demo", "prompt": "x", "cwd": allowed + "/../work"}, {"agent": "demo", "prompt": "x", "cwd": filepath.Join(allowed, "link")},
		{"agent": "demo", "prompt": "x", "cwd": allowed, "add_dirs": []string{h.Dir}},
	} {
		if status, text := s.do(s.request("POST", "/v1/runs", in), nil); status != http.StatusForbidden {
			t.Errorf("%v: %d %s", in, status, text)
		}
	}
	if runs := strings.Fields(h.Sh(nil, h.Amux, "ps", "-aq")); len(runs) != 1 {
		t.Errorf("there are the runs %q", runs)
	}
}

// The user's own socket needs no token, and is nobody else's.
func TestOwnSocket(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	h.Serve()
	cmd := exec.Command(h.Amux, "serve", "--http")
	cmd.Dir, cmd.Env = h.Dir, h.Env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	path := filepath.Join(h.Runtime(), "http.sock")
	h.Until("the socket is there", func() bool {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	over := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	answer, err := over.Get("http://localhost/v1/health")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("health is %d", answer.StatusCode)
	}
	r, _ := http.NewRequest("GET", "http://localhost/v1/health", nil)
	r.Header.Set("Origin", "http://localhost")
	if answer, err = over.Do(r); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of a browser gets %d", answer.StatusCode)
	}
	if out, err := h.Try(nil, h.Amux, "serve", "--http"); err == nil || !strings.Contains(out, "already running") {
		t.Errorf("a second one: %v: %s", err, out)
	}
}

// The terminal of a run: what is printed and typed, and who may type.
func TestScreen(t *testing.T) {
	t.Parallel()
	s := start(t)
	if status, _ := s.do(s.request("GET", "/v1/runs/nope/screen", nil), nil); status != http.StatusNotFound {
		t.Errorf("of no run: %d", status)
	}
	plain := s.begin("hello", nil)
	dial := func(id string, header http.Header) (*websocket.Conn, *http.Response, error) {
		if header == nil {
			header = http.Header{}
		}
		header.Set("Authorization", "Bearer "+s.token)
		return websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/runs/"+id+"/screen", &websocket.DialOptions{HTTPHeader: header})
	}
	if _, answer, err := dial(plain.ID, http.Header{"Origin": {"http://evil.example"}}); err == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of elsewhere: %v", err)
	}
	socket, _, err := dial(plain.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	_, data, err := socket.Read(t.Context())
	if err != nil || !bytes.Contains(data, []byte(`"type":"error"`)) {
		t.Errorf("a run without a terminal says %s, %v", data, err)
	}
	config := "[agents.shell]\nadapter = \"command\"\ncommand = \"sleep 600\"\n"
	if err := os.WriteFile(filepath.Join(s.User, ".agent-mux", "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	id := s.Sh(nil, s.Amux, "run", "shell", "--pty", "--detach", "x")
	one, _, err := dial(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer one.CloseNow()
	read := func(c *websocket.Conn, wanted string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), home.Patience)
		defer cancel()
		for {
			_, data, err := c.Read(ctx)
			if err != nil {
				t.Fatalf("%s does not come: %v", wanted, err)
			}
			if bytes.Contains(data, []byte(wanted)) {
				return
			}
		}
	}
	tell := func(c *websocket.Conn, kind websocket.MessageType, text string) {
		t.Helper()
		if err := c.Write(t.Context(), kind, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	read(one, `"type":"size"`)
	tell(one, websocket.MessageText, `{"type":"resize","cols":100,"rows":30}`)
	read(one, `"held":true`)
	read(one, `"cols":100`)
	two, _, err := dial(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer two.CloseNow()
	tell(two, websocket.MessageBinary, "x")
	read(two, `"type":"error"`)
	for _, bad := range []string{`{"type":"resize","cols":-1,"rows":1}`, `{"type":"dance"}`, `{`} {
		tell(one, websocket.MessageText, bad)
		read(one, `"type":"error"`)
	}
	tell(two, websocket.MessageText, `{"type":"take","steal":true}`)
	read(two, `"held":true`)
	tell(two, websocket.MessageText, `{"type":"give"}`)
	read(two, `"type":"holder"`)
	s.must("POST", "/v1/runs/"+id+"/kill", nil, nil)
	ctx, cancel := context.WithTimeout(t.Context(), home.Patience)
	defer cancel()
	for err == nil {
		_, _, err = one.Read(ctx)
	}
	if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("at the run's end: %v", err)
	}
}
