package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// fakeHost is a host with made-up agents and one made-up run.
type fakeHost struct {
	agents []host.AgentInfo
	auth   *pluginapi.AuthResponse
	run    *fakeRun
	refuse error // of Start
	// starting, if not nil, is what Start does; done is that of its context.
	starting  func(done <-chan struct{}) error
	opts      host.Options
	spec      host.RunSpec
	started   bool
	list      []host.RunInfo
	outcome   host.Outcome
	removed   []host.Removed
	integrity host.Integrity
	asked     []string
	closed    bool
	sessions  []host.Session
	plugins   []*pluginapi.AgentPlugin
	models    []*pluginapi.Model
	way       host.Installation
	talks     map[string][]host.Event
}

var _ Host = (*fakeHost)(nil)

func (h *fakeHost) Start(ctx context.Context, spec host.RunSpec) (Run, error) {
	h.spec, h.started = spec, true
	if h.starting != nil {
		if err := h.starting(ctx.Done()); err != nil {
			return nil, err
		}
	}
	if h.refuse != nil {
		return nil, h.refuse
	}
	return h.run, nil
}

func (h *fakeHost) Agents(context.Context) ([]host.AgentInfo, error) { return h.agents, nil }

func (h *fakeHost) Agent(_ context.Context, name string) (host.AgentInfo, error) {
	for _, a := range h.agents {
		if a.Description.Id == name {
			return a, a.Err
		}
	}
	return host.AgentInfo{}, pluginapi.Errorf(pluginapi.CodeAgentNotFound, "there is no agent named %q", name).WithHint("did you mean x?")
}

func (h *fakeHost) AgentPlugins(_ context.Context, name string) ([]*pluginapi.AgentPlugin, error) {
	if name != "alpha" {
		return nil, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s: its adapter cannot list plugins", name)
	}
	return h.plugins, nil
}

func (h *fakeHost) AgentModels(context.Context, string) ([]*pluginapi.Model, error) {
	return h.models, nil
}

func (h *fakeHost) DetectAuth(context.Context, string) (*pluginapi.AuthResponse, error) {
	return h.auth, nil
}

func (h *fakeHost) Sessions(_ context.Context, q host.SessionQuery) ([]host.Session, error) {
	h.asked = append(h.asked, fmt.Sprintf("sessions %s %q %d", q.Agent, q.Cwd, q.Limit))
	return h.sessions, h.refuse
}

func (h *fakeHost) ReadSession(_ context.Context, agent, id string, _ bool, each func(host.Event) bool) error {
	for _, e := range h.talks[id] {
		if !each(e) {
			return nil
		}
	}
	return nil
}

func (h *fakeHost) Installation(_ context.Context, name, kind string) (host.Installation, error) {
	h.asked = append(h.asked, fmt.Sprintf("installation %s %q", name, kind))
	return h.way, h.refuse
}

func (h *fakeHost) Install(_ context.Context, i host.Installation, _ io.Reader, _ io.Writer) (host.AgentInfo, error) {
	h.asked = append(h.asked, "install "+strings.Join(i.Argv, " "))
	return agent(i.Agent, func(a *host.AgentInfo) { a.Version, a.Program = i.Version, "/bin/"+i.Agent }), h.refuse
}

func (h *fakeHost) Refresh(ctx context.Context, name string) (host.AgentInfo, error) {
	h.asked = append(h.asked, "refresh "+name)
	return h.Agent(ctx, name)
}

func (h *fakeHost) Open(_ context.Context, ref string) (Recorded, error) {
	if h.run == nil || h.run.ID() != ref {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "there is no run %q", ref)
	}
	return h.run, nil
}

func (h *fakeHost) Runs(context.Context) ([]host.RunInfo, error) { return h.list, nil }

func (h *fakeHost) Cancel(_ context.Context, ref string, kill bool) (host.Outcome, error) {
	h.asked = append(h.asked, fmt.Sprintf("cancel %s %v", ref, kill))
	return h.outcome, h.refuse
}

func (h *fakeHost) Delete(_ context.Context, ref string) (host.Outcome, error) {
	h.asked = append(h.asked, "delete "+ref)
	return h.outcome, h.refuse
}

func (h *fakeHost) Clean(_ context.Context, dry bool) ([]host.Removed, error) {
	h.asked = append(h.asked, fmt.Sprintf("clean %v", dry))
	return h.removed, nil
}

func (h *fakeHost) Retain(context.Context) error {
	h.asked = append(h.asked, "retain")
	return nil
}

func (h *fakeHost) Adopt(context.Context) ([]Run, error) { return nil, nil }

func (h *fakeHost) Orphans() []string { return nil }

func (h *fakeHost) Abandoned() []string { return nil }

func (h *fakeHost) Recover(context.Context) error { return nil }

func (h *fakeHost) Check(context.Context, string) (host.Integrity, error) { return h.integrity, nil }

func (h *fakeHost) RecoverRun(_ context.Context, ref string) (bool, error) {
	h.asked = append(h.asked, "recover "+ref)
	return false, nil
}

func (h *fakeHost) ReplayWith(_ context.Context, _ string, o host.ReplayOptions, w io.Writer) error {
	if o.Plugin != "" {
		o.OnPlugin("other", "2.0.0")
		_, err := fmt.Fprintln(w, `{"type":"log","seq":1,"message":"of the other plugin"}`)
		return err
	}
	return h.run.CopyEvents(context.Background(), w, 1)
}

func (h *fakeHost) Close(context.Context) error {
	h.closed = true
	return nil
}

// fakeRun plays events. A call by which something is answered, or the run ended,
// goes on to the function that on names, if any.
type fakeRun struct {
	waits  bool // it leaves approvals to people, whatever its mode
	mu     sync.Mutex
	more   *sync.Cond
	events []host.Event
	over   bool
	calls  []string
	on     map[string]func(r *fakeRun)
	fail   map[string]error
	result host.Result
	cut    error // in place of the end, which is not recorded
	watch  sync.Once
	// watched is called when somebody begins to read the events.
	watched func()
	pieces  []host.TerminalPiece // of its terminal
}

const runID = "01M7X9DSQ827BHWDSGN2DGXP98"

func newFakeRun(events ...pluginapi.Payload) *fakeRun {
	r := &fakeRun{on: map[string]func(*fakeRun){}, fail: map[string]error{}, result: host.Result{RunID: runID, State: "completed"}}
	r.more = sync.NewCond(&r.mu)
	r.emit(events...)
	return r
}

// finished is a run whose events are all there.
func finished(events ...pluginapi.Payload) *fakeRun {
	r := newFakeRun(events...)
	r.end()
	return r
}

func (r *fakeRun) Waits(string) bool { return r.waits }

func (r *fakeRun) emit(events ...pluginapi.Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range events {
		data, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		raw := fmt.Sprintf(`{"type":%q,"run_id":%q,"seq":%d`, p.EventType(), runID, len(r.events)+1)
		if string(data) != "{}" {
			raw += "," + strings.TrimPrefix(string(data), "{")
		} else {
			raw += "}"
		}
		r.events = append(r.events, host.Event{Type: p.EventType(), RunID: runID, Seq: uint64(len(r.events) + 1), Raw: json.RawMessage(raw)})
	}
	r.more.Broadcast()
}

func (r *fakeRun) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.more.Broadcast()
}

func (r *fakeRun) called(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	word, _, _ := strings.Cut(call, " ")
	r.mu.Lock()
	r.calls = append(r.calls, call)
	then, err := r.on[word], r.fail[word]
	r.mu.Unlock()
	if then != nil && err == nil {
		then(r)
	}
	return err
}

func (r *fakeRun) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

func (r *fakeRun) ID() string { return runID }

func (r *fakeRun) Info() host.RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := host.RunInfo{ID: runID, Agent: "alpha", State: "completed", Prompt: "hi", Created: time.Unix(0, 0), Events: uint64(len(r.events))}
	if r.cut != nil {
		info.State, info.Code = "failed", pluginapi.CodeDiskFull
	} else if r.over {
		info.End = &pluginapi.RunEnd{State: "completed"}
	}
	return info
}

func (r *fakeRun) Events(from uint64) iter.Seq2[host.Event, error] {
	return func(yield func(host.Event, error) bool) {
		if r.watched != nil {
			r.watch.Do(r.watched)
		}
		for i := int(from - 1); ; i++ {
			r.mu.Lock()
			for i >= len(r.events) && !r.over {
				r.more.Wait()
			}
			if i >= len(r.events) {
				r.mu.Unlock()
				if r.cut != nil {
					yield(host.Event{}, r.cut)
				}
				return
			}
			e := r.events[i]
			r.mu.Unlock()
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (r *fakeRun) CopyEvents(_ context.Context, w io.Writer, from uint64) error {
	for e, err := range r.Events(from) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", e.Raw); err != nil {
			return err
		}
	}
	return nil
}

func (r *fakeRun) Wait() host.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.over {
		r.more.Wait()
	}
	return r.result
}

func (r *fakeRun) Send(_ context.Context, text string) error { return r.called("send %s", text) }
func (r *fakeRun) Approve(_ context.Context, id string, in json.RawMessage) error {
	return r.called("approve %s%s", id, in)
}
func (r *fakeRun) Deny(_ context.Context, id, reason string) error {
	return r.called("deny %s: %s", id, reason)
}
func (r *fakeRun) Answer(_ context.Context, id, text string) error {
	return r.called("answer %s: %s", id, text)
}
func (r *fakeRun) SetModel(_ context.Context, m string) error { return r.called("model %s", m) }
func (r *fakeRun) Interrupt(context.Context) error            { return r.called("interrupt") }
func (r *fakeRun) End(context.Context) error                  { return r.called("end") }
func (r *fakeRun) Stop(context.Context) error                 { return r.called("stop") }
func (r *fakeRun) Kill(context.Context) error                 { return r.called("kill") }
func (r *fakeRun) Pause(context.Context) error                { return r.called("pause") }
func (r *fakeRun) Resume(context.Context) error               { return r.called("resume") }
func (r *fakeRun) Signal(_ context.Context, n string) error   { return r.called("signal %s", n) }
func (r *fakeRun) Keys(_ context.Context, k []byte) error     { return r.called("keys %q", k) }
func (r *fakeRun) Resize(_ context.Context, cols, rows int) error {
	return r.called("resize %d %d", cols, rows)
}
func (r *fakeRun) Terminal(context.Context, bool) iter.Seq2[host.TerminalPiece, error] {
	return func(yield func(host.TerminalPiece, error) bool) {
		if r.pieces == nil {
			yield(host.TerminalPiece{}, pluginapi.Errorf(pluginapi.CodeCapability, "run %s has no terminal", runID))
		}
		for _, p := range r.pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
}
func (r *fakeRun) Tail(n int, w io.Writer) error {
	fmt.Fprintf(w, "the last %d\n", n)
	return nil
}

func agent(id string, change func(*host.AgentInfo)) host.AgentInfo {
	a := host.AgentInfo{
		Bundled:     true,
		Description: &pluginapi.Agent{Id: id, Summary: "Agent " + id, Capabilities: &pluginapi.Capabilities{Approvals: true, SystemAppend: true}},
		Plugin:      id, PluginVersion: "1.0.0", Trust: "bundled", PlatformOK: true, Installed: true, SignedIn: true,
		Auth: []*pluginapi.AuthState{{Provider: "p", Status: "authenticated", Method: "api_key", Found: "env P_KEY"}},
	}
	if change != nil {
		change(&a)
	}
	return a
}

// bench is one command line in a made-up world.
type bench struct {
	t       *testing.T
	host    *fakeHost
	io      *iostreams.IO
	env     []string
	config  string
	gone    bool // the folder that amux is started in
	signals chan os.Signal
	out     fmt.Stringer
	err     fmt.Stringer
}

func newBench(t *testing.T, stdin string) *bench {
	streams, out, err := iostreams.Test(stdin)
	return &bench{
		t: t, io: streams, out: out, err: err, config: t.TempDir(), signals: make(chan os.Signal, 8),
		host: &fakeHost{agents: []host.AgentInfo{
			agent("alpha", nil),
			agent("beta", func(a *host.AgentInfo) { a.Installed = false }),
			agent("demo", func(a *host.AgentInfo) { a.Description.Demo = true; a.Auth = nil }),
		}, run: finished()},
	}
}

// terminal makes stdin, stdout and stderr terminals; in is what is typed.
func (b *bench) terminal(in io.Reader) {
	b.io.In, b.io.InTTY, b.io.OutTTY, b.io.ErrTTY = in, true, true, true
}

func (b *bench) settings(content string) {
	b.t.Helper()
	if err := os.WriteFile(b.config+"/config.toml", []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) main(args ...string) int {
	app := &App{
		IO: b.io, Env: append([]string{"AGENT_MUX_CONFIG_DIR=" + b.config, "XDG_RUNTIME_DIR=" + b.config}, b.env...),
		Home: b.config, Cwd: b.config, Executable: b.config + "/amux", Version: "1.2.3",
		Signals: func() (<-chan os.Signal, func()) { return b.signals, func() {} },
		NewHost: func(o host.Options) (Host, error) {
			b.host.opts = o
			return b.host, nil
		},
	}
	if b.gone {
		app.Cwd = ""
	}
	return app.Main(args)
}

// typist sits at the terminal: it types its next line at every prompt that it
// reads on stderr, and leaves when it has no more.
type typist struct {
	mu    sync.Mutex
	seen  strings.Builder
	lines []string
	w     *io.PipeWriter
}

func newTypist(typed string) (*typist, io.Reader) {
	r, w := io.Pipe()
	return &typist{lines: strings.SplitAfter(typed, "\n"), w: w}, r
}

func (p *typist) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.Write(data)
	if text := string(data); strings.HasSuffix(text, "now on: ") || strings.HasSuffix(text, "> ") {
		line := p.lines[0]
		if line == "" {
			p.w.Close()
			return len(data), nil
		}
		p.lines = p.lines[1:]
		go p.w.Write([]byte(line))
	}
	return len(data), nil
}

func (p *typist) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

func (r *fakeRun) Lease(_ context.Context, _ string, steal bool) error {
	return r.called("lease %v", steal)
}

func (r *fakeRun) GiveBack(context.Context, string) error { return r.called("give back") }
