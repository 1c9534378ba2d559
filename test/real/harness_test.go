package real

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/internal/test/toolchain"
	"github.com/amux-dev/amux/pluginapi"
)

// agentRow is one agent in the table. A new agent is a row of agents, and, if
// need be, its API in fakemodel and its tools in fakemodel/tools.go.
type agentRow struct {
	id      string // as in amux run ID
	program string
	// env points the agent at the fake model; it may write into the home.
	env func(home, baseURL string) []string
	// read finds in a request what scenarios ask about.
	read func(fakemodel.Request) (asked, error)
	// shell is what the agent calls its shell tool.
	shell string
	// asksAbout is the script of a file that is made with the agent's question before;
	// default touch.
	asksAbout string
	// plan is the file with the adapter's flags, helpOf the subcommand that has
	// them; hidden are those that work and stand in no help.
	plan   string
	helpOf []string
	hidden string
	// home prepares the agent's home, if it needs settings; may be nil.
	home func(t *testing.T, home string)
	// unpriced: the agent names no money. noCacheWrites: it names no tokens that
	// went into a cache.
	unpriced, noCacheWrites bool
	// uncached: what it names as input has what came from a cache in it.
	uncached bool
	// always are options without which the agent is not run.
	always []string
	// minute: it loses a session that is resumed in the minute it began in.
	minute bool
	// patience is what a scenario may take; default scenarioTime. Some agents
	// cannot be kept from trying for long.
	patience time.Duration
	// slow: what it starts takes longer than other agents on a busy machine.
	slow bool
	// model is another one than the usual (default haiku), and subagent are the options with which
	// the agent has sub-agents.
	model    string
	subagent []string
	// mcpTool is how the model names the tool echo of the MCP server echo; default
	// mcp__echo__echo.
	mcpTool string
	// lacks has what the agent does not tell where others do, with the cause:
	// event types, and the facts that scenarios ask about by lacking.
	lacks map[string]string
	// tells has event types that the agent's story has in place of others, with the
	// cause: type → {type, cause}.
	tells map[string][2]string
	// with are other agents whose adapters and tests this one depends on.
	with []string
	// stores is the agent that keeps its sessions, if that is another one.
	stores string
	// na has the scenarios that the agent cannot do: name → reason.
	na map[string]string
	// elsewise has the causes of a failed run of which the agent says something else
	// than the others.
	elsewise map[string]otherCode
}

// otherCode is the code of an agent for a cause that others have another code for, and
// the reason, which was seen. No code: the run does not fail.
type otherCode struct {
	code   pluginapi.Code
	reason string
}

// agents are the columns of the table.
var agents = []agentRow{claude, codex, qwenRow, geminiRow, opencodeRow, opencodeHTTPRow, piRow, copilotRow, ompRow, openclawRow, hermesRow, remoteRow}

// timeout is one within which the agent starts a tool, unless the machine is busy.
func (a agentRow) timeout() time.Duration {
	if a.slow {
		return 45 * time.Second
	}
	if a.patience > 0 {
		return 15 * time.Second
	}
	return 3 * time.Second
}

// lacking reports whether the agent does not tell something.
func (r *run) lacking(what string) bool {
	_, ok := r.agent.lacks[what]
	return ok
}

// asked is what an agent asked the model, whatever the API.
type asked struct {
	Model, Effort, System string
	Texts                 []string // of all messages and tool results, in order
	Images                [][]byte
	Tools                 []string
}

func (a asked) contains(text string) bool {
	return slices.ContainsFunc(a.Texts, func(s string) bool { return strings.Contains(s, text) })
}

// scenario is one line of the table.
type scenario struct {
	name string
	do   func(*run)
}

// binDir has what make build left, or what AMUX_TEST_BIN names.
func binDir() string {
	if dir := os.Getenv("AMUX_TEST_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(tc.Root, "bin")
}

func TestAgents(t *testing.T) {
	amux := filepath.Join(binDir(), "amux")
	if _, err := os.Stat(amux); err != nil {
		t.Fatalf("%s is not there: run make build", amux)
	}
	for _, a := range agents {
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios {
				if !selected(a, s.name) {
					continue
				}
				t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
					t.Parallel()
					if reason, ok := a.na[s.name]; ok {
						report.set(a.id, s.name, cell{state: "n.a.", reason: reason})
						t.Skip(reason)
					}
					report.keep(t, a.id, s.name)
					s.do(newRun(t, a))
				})
			}
		})
	}
}

// run is one execution of bin/amux, from outside: arguments, lines on stdin,
// events on stdout, exit code.
type run struct {
	t     *testing.T
	agent agentRow
	model *fakemodel.Server
	dir   string // has all below
	cwd   string
	env   []string // besides the clean one
	// provider is where the agent looks for its model; usually model.URL.
	provider string

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr lockedBuffer
	plain  bool // stdout is text, no events
	killed bool // amux itself is killed, so its stdout has no end
	text   string
	events []event
	exit   int
	ended  bool
}

// event is one line of amux's stdout.
type event struct {
	Type          pluginapi.Type
	RunID         string `json:"run_id"`
	Seq           uint64
	Time          time.Time
	Agent         string
	Parent        string `json:"parent_id"`
	ToolCallID    string `json:"tool_call_id"`
	InteractionID string `json:"interaction_id"`
	Raw           string `json:"-"`
}

// unlessMissing skips a test of an agent that this machine cannot have.
func unlessMissing(t *testing.T, agent agentRow) {
	t.Helper()
	if why, missing := tc.Missing[agent.program]; missing {
		t.Skip(why)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newRun makes a home, a working directory and a fake model.
func newRun(t *testing.T, agent agentRow) *run {
	t.Helper()
	unlessMissing(t, agent)
	report.blame(t, agent.id)
	// A short path: sockets must fit into 108 bytes.
	dir, err := os.MkdirTemp("", "amux-real-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if agent.model == "" {
		agent.model = "haiku"
	}
	if agent.mcpTool == "" {
		agent.mcpTool = "mcp__echo__echo"
	}
	if agent.asksAbout == "" {
		agent.asksAbout = "touch"
	}
	model := newModel(t)
	r := &run{t: t, agent: agent, model: model, dir: dir, cwd: filepath.Join(dir, "work"), provider: model.URL}
	for _, name := range []string{"home", "work", "run", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if agent.home != nil {
		agent.home(t, filepath.Join(dir, "home"))
	}
	return r
}

// again is a further run with the same home, directory and model.
func (r *run) again() *run {
	return &run{t: r.t, agent: r.agent, model: r.model, dir: r.dir, cwd: r.cwd, env: r.env, provider: r.provider}
}

func (r *run) path(name string) string { return filepath.Join(r.cwd, name) }

// amux prepares bin/amux with any arguments.
func (r *run) amux(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(binDir(), "amux"), args...)
	cmd.Dir = r.cwd
	cmd.Env = append(toolchain.Env(filepath.Join(r.dir, "home")), r.agent.env(filepath.Join(r.dir, "home"), r.provider)...)
	cmd.Env = append(cmd.Env, "PATH="+tc.Path()+string(os.PathListSeparator)+binDir(), "TMPDIR="+filepath.Join(r.dir, "tmp"),
		"NODE_COMPILE_CACHE="+filepath.Join(tc.Root, ".cache", "compiled"), // kept from one test to the next, as it would be at home
		"XDG_RUNTIME_DIR="+filepath.Join(r.dir, "run"), "AGENT_MUX_CONFIG_DIR="+filepath.Join(r.dir, "config"))
	cmd.Env = append(cmd.Env, r.env...)
	return cmd
}

// start runs amux run AGENT with these arguments and an open stdin.
func (r *run) start(args ...string) *run {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), max(scenarioTime, r.agent.patience))
	r.t.Cleanup(cancel)
	if !r.plain {
		args = append(args, "--json")
	}
	if !slices.Contains(args, "--approve") {
		args = append(args, r.agent.always...)
	}
	r.cmd = r.amux(ctx, append([]string{"run", r.agent.id}, args...)...)
	r.cmd.Stderr = &r.stderr
	// One that takes too long says where it is.
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(syscall.SIGQUIT) }
	r.cmd.WaitDelay = 3 * time.Second
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	r.stdout = bufio.NewReader(stdout)
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if !r.ended {
			cancel()
			r.cmd.Wait()
		}
		if r.t.Failed() {
			r.t.Log(r.account())
		}
	})
	return r
}

// once runs one prompt to the end, with nothing on stdin.
func (r *run) once(prompt string, args ...string) *run {
	r.t.Helper()
	r.start(append([]string{prompt}, args...)...)
	r.stdin.Close()
	return r.wait()
}

// converse starts a run that takes its prompts from stdin.
func (r *run) converse(args ...string) *run {
	r.t.Helper()
	return r.start(append([]string{"--input", "ndjson"}, args...)...)
}

func (r *run) send(fields map[string]any) {
	r.t.Helper()
	data, err := json.Marshal(fields)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.stdin.Write(append(data, '\n')); err != nil {
		r.t.Fatalf("write to amux: %v", err)
	}
}

func (r *run) prompt(text string) {
	r.t.Helper()
	r.send(map[string]any{"type": "prompt", "text": text})
}

// read takes one event off stdout; false at its end.
func (r *run) read() (event, bool) {
	r.t.Helper()
	raw, err := r.stdout.ReadString('\n')
	if err != nil {
		if raw != "" && !r.killed {
			r.t.Fatalf("the last line of stdout is torn: %q", raw)
		}
		return event{}, false
	}
	e := event{Raw: strings.TrimSuffix(raw, "\n")}
	if err := json.Unmarshal([]byte(raw), &e); err != nil {
		r.t.Fatalf("stdout is not JSON: %v\n%s", err, raw)
	}
	r.events = append(r.events, e)
	if strings.HasPrefix(r.t.Name(), "TestAgents/") {
		report.see(r.agent.id, e.Type)
	}
	return e, true
}

// until reads up to the next event of a type.
func (r *run) until(t pluginapi.Type) event {
	r.t.Helper()
	for {
		e, ok := r.read()
		if !ok {
			r.t.Fatalf("the run ended before %s came", t)
		}
		if e.Type == t {
			return e
		}
	}
}

// wait reads the rest, takes the exit code and checks what holds for every run.
func (r *run) wait() *run {
	r.t.Helper()
	if r.plain {
		data, err := io.ReadAll(r.stdout)
		if err != nil {
			r.t.Fatal(err)
		}
		r.text = string(data)
	} else {
		for {
			if _, ok := r.read(); !ok {
				break
			}
		}
	}
	r.stdin.Close()
	err := r.cmd.Wait()
	r.ended = true
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed:
		r.exit = exit.ExitCode()
	case err != nil:
		r.t.Fatal(err)
	}
	if !r.plain && !r.killed {
		r.checkStream()
	}
	r.checkLeftovers()
	return r
}

// hostTypes are written by the host, so no adapter need claim them.
var hostTypes = []pluginapi.Type{
	"user_message", "run_state", "run_end", "aborted", "timeout", "turn_limit", "crash", "debug", "error", "retry",
	"approval_granted", "approval_denied", "approval_preview", "approvals_changed", "input_answered", "interrupted", "paused", "resumed", "stream_fallback",
	"session_end", "log",
}

// checkStream checks numbers, order and ends.
func (r *run) checkStream() {
	r.t.Helper()
	if len(r.events) == 0 {
		r.t.Fatalf("no event came; exit %d", r.exit)
	}
	claimed := r.claimedTypes()
	last := len(r.events) - 1
	ends, endings := 0, 0
	open := map[string]bool{}
	for i, e := range r.events {
		if e.Seq != uint64(i+1) || e.RunID != r.events[0].RunID || e.Agent != r.agent.id || e.Time.IsZero() {
			r.t.Errorf("event %d has seq %d, run %s, agent %q, time %v", i+1, e.Seq, e.RunID, e.Agent, e.Time)
		}
		if !strings.HasPrefix(e.Raw, `{"type":"`) {
			r.t.Errorf("event %d does not begin with its type: %.80s", i+1, e.Raw)
		}
		if !slices.Contains(hostTypes, e.Type) && !slices.Contains(claimed, e.Type) {
			r.t.Errorf("event %s is not among those that Describe claims", e.Type)
		}
		switch e.Type {
		case "run_end":
			ends++
		case "aborted", "timeout", "turn_limit", "crash":
			endings++
		case "tool_call_start":
			if open[e.ToolCallID] {
				r.t.Errorf("tool %s starts twice", e.ToolCallID)
			}
			open[e.ToolCallID] = true
		case "tool_result", "tool_error":
			if !open[e.ToolCallID] {
				r.t.Errorf("%s for %s, which is not open", e.Type, e.ToolCallID)
			}
			delete(open, e.ToolCallID)
		case "unknown":
			r.t.Errorf("the adapter does not know a line: %.300s", e.Raw)
		case "log":
			var l pluginapi.Log
			if json.Unmarshal([]byte(e.Raw), &l); l.Source == "stdout" {
				r.t.Errorf("the adapter does not know a line: %.300s", l.Line)
			}
		}
	}
	if ends != 1 || r.events[last].Type != "run_end" {
		r.t.Errorf("%d run_end, the last event is %s", ends, r.events[last].Type)
	}
	if endings > 1 {
		r.t.Errorf("%d of aborted, timeout, turn_limit, crash", endings)
	}
	for id := range open {
		r.t.Errorf("tool %s has neither result nor error", id)
	}
	// What was printed is what was recorded.
	recorded, err := os.ReadFile(filepath.Join(r.dir, "config", "runs", r.events[0].RunID, "events.jsonl"))
	if err != nil {
		r.t.Error(err)
		return
	}
	var printed strings.Builder
	for _, e := range r.events {
		printed.WriteString(e.Raw + "\n")
	}
	if printed.String() != string(recorded) {
		r.t.Errorf("stdout has %d bytes, events.jsonl has %d others", printed.Len(), len(recorded))
	}
}

// claimedTypes reads describe.json beside the shipped plugins.
func (r *run) claimedTypes() []pluginapi.Type {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(binDir(), "plugins", "*", "describe.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range files {
		var d struct {
			Agents []struct {
				ID         string
				EventTypes []pluginapi.Type `json:"event_types"`
			}
		}
		data, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := json.Unmarshal(data, &d); err != nil {
			r.t.Fatalf("%s: %v", file, err)
		}
		for _, a := range d.Agents {
			if a.ID == r.agent.id {
				return a.EventTypes
			}
		}
	}
	r.t.Fatalf("no describe.json in bin/plugins has %s", r.agent.id)
	return nil
}

// checkLeftovers looks for processes and temp files of the run. The shim may
// need a moment for its own end.
func (r *run) checkLeftovers() {
	r.t.Helper()
	marker := r.dir // the config dir is in every environment of the run
	if len(r.events) > 0 {
		marker = r.events[0].RunID
	}
	var left, temp []string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left = processesWith(marker)
		temp, _ = filepath.Glob(filepath.Join(r.dir, "tmp", "agent-mux-*"))
		if len(left)+len(temp) == 0 {
			break
		}
	}
	for _, process := range left {
		r.t.Errorf("left behind: %s", process)
	}
	for _, dir := range temp {
		inside, _ := os.ReadDir(dir)
		r.t.Errorf("temp dir left behind: %s %v", dir, inside)
	}
}

// processesWith finds processes whose AMUX_RUN_ID names the run, or whose
// environment names the directory.
func processesWith(marker string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for variable := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Contains(variable, []byte(marker)) {
				command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
				found = append(found, fmt.Sprintf("%s %q", filepath.Base(filepath.Dir(file)), bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
				break
			}
		}
	}
	return found
}

// types is the sequence of event types.
func (r *run) types() []string {
	var all []string
	for _, e := range r.events {
		all = append(all, string(e.Type))
	}
	return all
}

// want checks that events of these types came in this order, others between.
func (r *run) want(types ...pluginapi.Type) {
	r.t.Helper()
	i := 0
	for _, t := range types {
		if r.lacking(string(t)) {
			if slices.Contains(r.types(), string(t)) {
				r.t.Errorf("there is a %s, which the agent is said to lack", t)
			}
			continue
		}
		if (t == "retry" || t == "rate_limited") && r.lacking("retries in their place") {
			if !slices.Contains(r.types(), string(t)) {
				r.t.Errorf("no %s in %v", t, r.types())
			}
			continue
		}
		for i < len(r.events) && r.events[i].Type != t {
			i++
		}
		if i == len(r.events) {
			r.t.Errorf("no %s in its place in %v", t, r.types())
			return
		}
		i++
	}
}

// all decodes the events of P's type.
func all[P pluginapi.Payload](r *run) []P {
	r.t.Helper()
	var zero P
	var found []P
	for _, e := range r.events {
		if e.Type != zero.EventType() {
			continue
		}
		var p P
		if err := json.Unmarshal([]byte(e.Raw), &p); err != nil {
			r.t.Fatalf("%s: %v", e.Type, err)
		}
		found = append(found, p)
	}
	return found
}

// one is the only event of P's type.
func one[P pluginapi.Payload](r *run) P {
	r.t.Helper()
	found := all[P](r)
	if len(found) != 1 {
		var zero P
		r.t.Fatalf("%d events %s, want 1", len(found), zero.EventType())
	}
	return found[0]
}

func (r *run) end() pluginapi.RunEnd { r.t.Helper(); return one[pluginapi.RunEnd](r) }

// finalText is the last message of the main conversation.
func (r *run) finalText() string {
	text := ""
	for _, m := range all[pluginapi.MessageStop](r) {
		if m.ParentID == "" {
			text = m.Text
		}
	}
	return text
}

// ok checks that the run succeeded and what it cost.
func (r *run) ok(turns int) {
	r.t.Helper()
	end := r.end()
	if r.exit != 0 || end.State != "completed" || end.Code != "" || end.Turns != turns {
		r.t.Errorf("exit %d, state %s, code %q, %d turns; want 0, completed, none, %d", r.exit, end.State, end.Code, end.Turns, turns)
	}
	r.want("run_state", "session_start", "turn_start", "turn_end", "session_end", "run_state", "run_end")
}

// tokens checks the totals against n answers of the model, and that the events
// add up to them.
func (r *run) tokens(n int64) {
	r.t.Helper()
	if r.lacking("steps") && n > 1 {
		return
	}
	end := r.end()
	sum := map[string]int64{}
	for _, u := range all[pluginapi.TokenUsage](r) {
		for name, v := range map[string]*int64{"input": u.InputTokens, "output": u.OutputTokens, "cache read": u.CacheReadTokens, "cache write": u.CacheWriteTokens} {
			if v != nil {
				sum[name] += *v
			}
		}
	}
	for name, c := range map[string]struct {
		got  *int64
		each int64
	}{
		"input": {end.Tokens.Input, fakemodel.InputTokens}, "output": {end.Tokens.Output, fakemodel.OutputTokens},
		"cache read": {end.Tokens.CacheRead, fakemodel.CacheReadTokens}, "cache write": {end.Tokens.CacheWrite, fakemodel.CacheWriteTokens},
	} {
		switch {
		case name == "cache write" && r.agent.noCacheWrites, name == "cache read" && r.agent.uncached:
			if c.got != nil && *c.got != 0 {
				r.t.Errorf("%s tokens: %d, which the agent does not name", name, *c.got)
			}
			continue
		case name == "input" && r.agent.uncached:
			c.each += fakemodel.CacheReadTokens
		}
		if c.got == nil || *c.got != n*c.each || sum[name] != n*c.each {
			r.t.Errorf("%s tokens: total %v, sum of events %d, want %d", name, show(c.got), sum[name], n*c.each)
		}
	}
	if end.Cost == nil && r.lacking("the cost before") && one[pluginapi.SessionStart](r).Resumed {
		return
	}
	if r.agent.unpriced {
		if end.Cost != nil {
			r.t.Errorf("cost %v, though the agent names no money", end.Cost)
		}
		return
	}
	cost := 0.0
	for _, c := range all[pluginapi.Cost](r) {
		cost += c.Cost.USD
	}
	if end.Cost == nil || end.Cost.USD <= 0 || math.Abs(end.Cost.USD-cost) > 1e-9 {
		r.t.Errorf("cost %v, sum of events %v", end.Cost, cost)
	}
}

// sameCost checks that another run with the same turn cost the same.
func (r *run) sameCost(other *run) {
	r.t.Helper()
	a, b := r.end().Cost, other.end().Cost
	if r.agent.unpriced || r.lacking("the cost before") {
		return // the tokens were compared
	}
	if a == nil || b == nil || math.Abs(a.USD-b.USD) > 1e-9 {
		r.t.Errorf("the same turn cost %v, then %v", a, b)
	}
}

func show(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

// failed checks the way a run failed.
func (r *run) failed(code pluginapi.Code, exit int) pluginapi.RunEnd {
	r.t.Helper()
	end := r.end()
	if end.State != "failed" || end.Code != code || r.exit != exit || end.Message == "" {
		r.t.Errorf("state %s, code %q, exit %d, message %q; want failed, %s, %d", end.State, end.Code, r.exit, end.Message, code, exit)
	}
	return end
}

// asked reads model request i, from the end if negative.
func (r *run) asked(i int) asked {
	r.t.Helper()
	requests := r.model.ModelRequests()
	if i < 0 {
		i += len(requests)
	}
	if i < 0 || i >= len(requests) {
		r.t.Fatalf("%d requests at the model", len(requests))
	}
	a, err := r.agent.read(requests[i])
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// running waits until a process of the run has this in its command line.
func (r *run) running(command string) {
	r.t.Helper()
	if r.lacking("processes") {
		return
	}
	for deadline := time.Now().Add(max(scenarioTime, r.agent.patience)); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if slices.ContainsFunc(processesWith(r.events[0].RunID), func(p string) bool { return strings.Contains(p, command) }) {
			return
		}
	}
	r.t.Fatalf("no process %q came", command)
}

// inTool waits until the command of the script sleep runs.
func (r *run) inTool() {
	r.t.Helper()
	if r.lacking("shell_start") {
		r.until("run_state")
	} else {
		r.until("shell_start")
	}
	r.running(`"sleep 987`)
}

// account tells a failed run.
func (r *run) account() string {
	var b strings.Builder
	fmt.Fprintf(&b, "amux %.1000s\nexit %d\nstderr: %.60000s\n", strings.Join(r.cmd.Args[1:], " "), r.exit, r.stderr.String())
	for _, e := range r.events {
		line := e.Raw
		if len(line) > 300 {
			line = line[:300] + "…"
		}
		b.WriteString(line + "\n")
	}
	for _, q := range r.model.Requests() {
		fmt.Fprintf(&b, "model: %s %s %s=%s round %d: %d\n", q.Method, q.Path, q.Script, q.Arg, q.Round, q.Status)
	}
	return b.String()
}

// lockedBuffer may be read while a process writes it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
