//go:build unix

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/sim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/slowlock"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// ---- the adapter ----

// simulated is the adapter of simulated agents, which speak lines. Each line is an event,
// and those that begin with > say something besides. What comes from people goes to the
// agent's stdin, a line for each.
type simulated struct{ program string }

func (simulated) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id: "sim", DisplayName: "sim", Summary: "a simulated agent",
		Capabilities: &pluginapi.Capabilities{MultiTurn: true, TextStreaming: true, Approvals: true, Tools: true, Interrupt: true},
		EventTypes:   []string{"token_usage"},
	}
}

func (s simulated) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return &pluginapi.Plan{Program: s.program, Stdin: pb.Stdin_STDIN_OPEN, SessionId: fmt.Sprintf("%s-%d", req.SessionId, req.Attempt)}, nil
}

func (simulated) Converse(*pluginapi.Start) (sdk.Conversation, error) { return &conversed{}, nil }

type conversed struct{ turns int }

func (c *conversed) Handle(in *pluginapi.Input, out *sdk.Out) error {
	write := func(what string) { out.Write([]byte(what + "\n")) }
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		line := string(in.Data)
		object, _ := json.Marshal(map[string]string{"delta": line})
		out.RawEvent("text_delta", object)
		word, rest, _ := strings.Cut(strings.TrimPrefix(line, "> "), " ")
		if !strings.HasPrefix(line, "> ") {
			break
		}
		switch word {
		case "turn":
			out.TurnStarted()
		case "ask":
			out.RawEvent("approval_request", fmt.Appendf(nil, `{"interaction_id":%q,"action":"write","tool_name":"write_file","tool_kind":"file","paths":["no-such-file"],"input":{"content":"new\n"}}`, rest))
		case "idle":
			c.turns++
			out.RawEvent("turn_end", fmt.Appendf(nil, `{"turn_index":%d}`, c.turns-1))
			out.Idle()
		case "usage": // a line that is torn makes a malformed event, at which the host gives the adapter up
			out.RawEvent("token_usage", fmt.Appendf(nil, `{"output_tokens":%s}`, rest))
		case "timer":
			out.SetTimer(rest, 700*time.Millisecond)
		case "done":
			out.Outcome(&pluginapi.Outcome{Code: rest, Message: rest, Retryable: rest != ""})
		}
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_PROMPT:
		write("prompt " + in.Id)
	case pb.InputKind_INPUT_APPROVE, pb.InputKind_INPUT_DENY:
		verb, event := "approve ", pluginapi.Type("approval_granted")
		if in.Kind == pb.InputKind_INPUT_DENY {
			verb, event = "deny ", "approval_denied"
		}
		out.RawEvent(event, fmt.Appendf(nil, `{"interaction_id":%q}`, in.Id))
		write(verb + in.Id)
	case pb.InputKind_INPUT_TIMER:
		write("timer " + in.Id)
	case pb.InputKind_INPUT_END:
		out.CloseStdin()
	}
	return nil
}

// ---- the agent ----

// mood is what an agent does besides its work.
type mood struct {
	exit    int // code with which it exits in the middle
	signal  syscall.Signal
	limited bool
	hangs   bool
}

// behave is the script of the agents.
func behave(a *sim.Agent) {
	r := a.Rand
	var m mood
	switch r.IntN(16) {
	case 0:
		m.exit = 1 + r.IntN(3)
	case 1:
		m.signal = syscall.SIGSEGV
	case 2, 3, 4:
		m.limited = a.Spawn < 3
	case 5:
		m.hangs = true
	}
	a.Stubborn = r.IntN(8) == 0
	if r.IntN(8) == 0 {
		a.Leave(r.IntN(2) == 0)
	}
	w := &worker{Agent: a, mood: m, usage: a.Seeded("usage")}
	w.lines(r.IntN(3))
	for turns := 0; ; {
		line, end := w.next(30 * time.Second)
		if end {
			break
		}
		if turns++; turns > 20 {
			break
		}
		if strings.HasPrefix(line, "prompt ") {
			w.turn()
		}
	}
	w.say("> done")
	if r.IntN(8) == 0 {
		a.Print(0, []byte("a last line that has no end"))
	}
	a.Exit(0)
}

type worker struct {
	*sim.Agent
	mood   mood
	usage  *rand.Rand
	n      int
	asked  int
	queued []string
}

func (w *worker) next(wait time.Duration) (line string, end bool) {
	if len(w.queued) > 0 {
		line, w.queued = w.queued[0], w.queued[1:]
		return line, false
	}
	return w.Line(wait)
}

func (w *worker) say(line string) { w.Print(0, []byte(line+"\n")) }

// lines prints some, in one piece or in several.
func (w *worker) lines(n int) {
	var text []byte
	for range n {
		w.n++
		size := w.Rand.IntN(40)
		switch w.Rand.IntN(200) {
		case 0:
			size = 10 << 10
		case 1:
			size = 100 << 10
		case 2, 3, 4:
			text = append(text, '\n') // an empty one
		}
		text = fmt.Appendf(text, "%d.%d %s", w.Spawn, w.n, strings.Repeat("x", size))
		if w.Rand.IntN(16) == 0 {
			text = append(text, '\r')
		}
		text = append(text, '\n')
		if w.Rand.IntN(8) == 0 {
			w.Print(1, fmt.Appendf(nil, "note %d\n", w.n))
		}
		if w.Rand.IntN(3) == 0 {
			cut := w.Rand.IntN(len(text) + 1)
			w.Print(0, text[:cut])
			text = text[cut:]
		}
	}
	w.Print(0, text)
}

func (w *worker) turn() {
	r := w.Rand
	w.say("> turn")
	for range 1 + r.IntN(8) {
		w.lines(r.IntN(6))
		if w.usage.IntN(4) == 0 {
			w.say(fmt.Sprintf("> usage %d", 1+w.usage.IntN(100)))
		}
		switch r.IntN(12) {
		case 0, 1:
			w.ask()
		case 2:
			w.say(fmt.Sprintf("> timer t%d-%d", w.Spawn, w.n))
		case 3:
			w.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
		case 4, 5, 6:
			w.Sleep(time.Duration(r.Int64N(int64(time.Second))))
		case 7:
			switch {
			case w.mood.exit > 0:
				w.Exit(w.mood.exit)
			case w.mood.signal != 0:
				w.Crash(w.mood.signal)
			case w.mood.limited:
				w.say("> done RATE_LIMITED")
				w.Exit(1)
			case w.mood.hangs:
				w.Sleep(time.Hour)
			}
		}
	}
	w.say("> idle")
}

// ask asks for permission, and waits for the answer or goes on.
func (w *worker) ask() {
	w.asked++
	id := fmt.Sprintf("q%d-%d", w.Spawn, w.asked)
	w.say("> ask " + id)
	if w.Rand.IntN(8) == 0 {
		return
	}
	for range 40 {
		line, end := w.Line(10 * time.Second)
		if end || line == "approve "+id || line == "deny "+id {
			return
		}
		if line != "" {
			w.queued = append(w.queued, line)
		}
	}
}

// ---- the scenario ----

// simulation is one seed.
type simulation struct {
	*sim.World
	rand   *rand.Rand
	stage  *stage
	plugin sim.Plugin

	mu       sync.Mutex
	runs     []*simulatedRun
	host     *simulatedHost
	rivals   bool // there are other hosts that take up what they find
	crashes  int  // of hosts that are to come
	cut      bool
	filled   bool
	plugins  int
	problems []string
	took     time.Duration // in virtual time
}

// simulatedRun is what is known of a run from outside.
type simulatedRun struct {
	id   string
	spec RunSpec

	mu       slowlock.Lock     // held while it is checked, which takes virtual time
	returned bool              // Start has
	started  bool              // with a run
	live     map[uint64]string // events as consumers saw them, by number
	synced   map[uint64]string // those that the host had shown: a follower elsewhere may see what is being written
	answered map[string]int    // answers that were accepted, by question
	sent     []string          // prompts that were accepted
	result   *Result
	events   string // events.jsonl when Wait had returned

	journal []byte // as it was when somebody had packed it
}

// simulatedHost is a host and its process.
type simulatedHost struct {
	*Host
	proc *sim.Proc
}

// stage is what all seeds share.
type stage struct {
	folder  string
	program string
	server  pb.AdapterServer
	about   *pluginapi.Description
}

func newStage(folder string) (*stage, error) {
	s := &stage{folder: folder, program: filepath.Join(folder, "sim", "amux-plugin-sim")}
	var err error
	if s.server, err = sdk.NewServer("sim", "1.0.0", simulated{s.program}); err != nil {
		return nil, err
	}
	if s.about, err = s.server.Describe(context.Background(), nil); err != nil {
		return nil, err
	}
	text, err := sdk.DescribeJSON(s.about)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{
		"amux-plugin.toml": "manifest = 1\nname = \"sim\"\nversion = \"1.0.0\"\n\n[protocol]\nmajor = [1]\n\n[[agent]]\nid = \"sim\"\n",
		"describe.json":    string(text), "amux-plugin-sim": "#!/bin/false\n",
	} {
		path := filepath.Join(folder, "sim", name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700))
	}
	return s, errors.Join(err, os.Mkdir(filepath.Join(folder, "plugins"), 0o700)) // where hosts keep what they have verified
}

// newHost starts a process with a host: one that hosts, or a client.
func (s *simulation) newHost(kind string) *simulatedHost {
	p := s.Proc(kind)
	h, err := New(Options{
		ConfigDir: p.Root + "/config", RuntimeDir: p.Root + "/run", TempDir: p.Root + "/tmp", BundledDir: p.Root + "/none", ShimPath: s.stage.folder + "/amux-shim",
		Env: []string{"PATH=/nowhere"}, Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: hostLog{s, p}}), Plugins: map[string]string{"sim": s.stage.folder + "/sim"},
	})
	if err != nil {
		panic(err)
	}
	h.edges = edges{
		open: p.Open, launch: p.Launch, relay: p.Relay, dial: p.Dial, plugin: p.Start(s.plugin), random: s.Rand(p.Name + " jitter").Float64,
		sweep: func(meta store.Meta) {
			if p.Alive() {
				s.Sweep(meta.RunID)
			}
		},
	}
	h.archive.Packer = record.Packer{Open: p.Open, Rename: p.Rename, Least: 1}
	if kind == "host" {
		p.OnDeath(func() { // its locks end with it
			locks, _ := filepath.Glob(s.Disk() + "/config/runs/*/lock")
			for _, lock := range locks {
				// With another host it is not known whose one is that it has for a moment only;
				// that is given up at the next step.
				if len(s.Procs("host")) == 0 || h.runs.has(filepath.Base(filepath.Dir(lock))) {
					_ = os.Remove(lock)
				}
			}
		})
	}
	return &simulatedHost{h, p}
}

// hostLog is what a host logs, in the trace.
type hostLog struct {
	s    *simulation
	proc *sim.Proc
}

func (l hostLog) Write(line []byte) (int, error) {
	if l.s.World.Trace != nil {
		l.s.World.Trace(l.proc.Name + " logs " + strings.TrimSuffix(string(line), "\n"))
	}
	return len(line), nil
}

// do calls f, and returns when it has or when the process is dead.
func (h *simulatedHost) do(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-h.proc.Dead:
	}
}

func (s *simulation) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *simulation) span(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rand.Int64N(int64(to-from)))
}

// newRun draws a run.
func (s *simulation) newRun() *simulatedRun {
	r := s.rand
	var id ulid.ULID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	id[0] &= 0x7f
	run := &simulatedRun{id: id.String(), mu: slowlock.New(), live: map[uint64]string{}, synced: map[uint64]string{}, answered: map[string]int{}}
	spec := RunSpec{
		Agent: "sim", RunID: run.id, Prompt: "go", Workspace: Workspace{Cwd: "/"}, Detached: r.IntN(2) == 0, Conversation: r.IntN(5) < 2,
		Sync: []SyncMode{"", SyncAlways, SyncAlways, SyncOff}[r.IntN(4)],
		Permissions: Permissions{
			Approve:    []ApproveMode{ApproveAsk, ApproveAsk, ApproveAuto, ApproveDeny}[r.IntN(4)],
			Unattended: r.IntN(8) == 0,
		},
		Limits: Limits{Grace: s.span(10*time.Millisecond, 2*time.Second)},
	}
	if !spec.Conversation && r.IntN(2) == 0 {
		spec.Retry = &Retry{MaxAttempts: 1 + r.IntN(4)}
	}
	if r.IntN(8) == 0 {
		spec.Timeout = s.span(time.Second, time.Minute)
	}
	if r.IntN(8) == 0 {
		spec.IdleTimeout = s.span(time.Second, 20*time.Second)
	}
	if budget := s.Rand("budget of " + run.id); budget.IntN(3) == 0 {
		spec.MaxTokens = 1 + budget.Int64N(300)
	}
	var used int64
	fate := s.Rand("fate at the budget of " + run.id)
	spec.OnEvent = func(e Event) {
		var usage pluginapi.TokenUsage
		if spec.MaxTokens > 0 && e.Type == "token_usage" && e.Decode(&usage) == nil && used < spec.MaxTokens {
			if used += *usage.OutputTokens; used >= spec.MaxTokens && fate.IntN(3) == 0 {
				s.dieAtBudget(fate)
			}
		}
		run.see(e)
		run.mu.Lock()
		defer run.mu.Unlock()
		run.synced[e.Seq] = string(e.Raw)
	}
	run.spec = spec
	return run
}

// dieAtBudget has the host, or the shims, die about when a budget is found to be spent.
func (s *simulation) dieAtBudget(r *rand.Rand) {
	kind, after := []string{"host", "shim"}[r.IntN(3)/2], time.Duration(r.Int64N(int64(3*time.Millisecond)))
	if r.IntN(4) == 0 {
		after *= 1000 // in the time that the agent has to finish
	}
	time.AfterFunc(after, func() {
		for _, p := range s.Procs(kind) {
			s.Count("death of a " + kind + " at a budget")
			p.Crash()
		}
	})
}

// see takes in an event that a consumer has seen.
func (r *simulatedRun) see(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[e.Seq] = string(e.Raw)
}

// trouble draws what is wrong with the next plugin process.
func (s *simulation) trouble() (t sim.Trouble) {
	s.mu.Lock()
	s.plugins++
	r := s.Rand(fmt.Sprintf("plugin trouble %d", s.plugins))
	s.mu.Unlock()
	switch r.IntN(8) {
	case 0, 1:
		t.DieIn, t.DieAt, t.Killed = []string{"plan", "handle", "handle", "answer", "answer"}[r.IntN(5)], 1+r.IntN(40), r.IntN(3) == 0
		if t.DieIn == "plan" {
			t.DieAt = 1
		}
	case 2:
		t.Slow = true
	case 3:
		if r.IntN(3) == 0 {
			t.HangAt = 1 + r.IntN(40)
		}
	case 4:
		t.Repeat = r.IntN(4) == 0
	}
	return t
}

const (
	patience = 5 * time.Minute // for the faults
	calm     = 4 * time.Minute // for what is left to end, with no fault
)

// play plays the scenario to its end.
func (s *simulation) play() {
	r, began := s.rand, time.Now()
	s.plugin = sim.Plugin{Description: s.stage.about, Serve: func() pb.AdapterServer { return s.stage.server }, Trouble: s.trouble}
	disk := s.Disk()
	for _, dir := range []string{"config", "run", "tmp"} {
		if err := os.Mkdir(filepath.Join(disk, dir), 0o700); err != nil {
			panic(err)
		}
	}
	if err := os.Symlink(filepath.Join(s.stage.folder, "plugins"), filepath.Join(disk, "config", "plugins")); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 1 + r.IntN(8)/6 {
		s.runs = append(s.runs, s.newRun())
	}
	s.crashes = max(0, r.IntN(6)-2)
	s.host = s.newHost("host")
	s.doom(s.host)
	s.arrange(ctx)
	for n, run := range s.runs {
		h, after := s.host, time.Duration(n)*s.span(1, time.Second)
		go h.do(func() {
			time.Sleep(after)
			s.startRun(ctx, h, run)
		})
		for n := range r.IntN(4) {
			go s.client(ctx, run, n)
		}
	}
	var packers sync.WaitGroup
	packs := s.Rand("packers")
	if packs.IntN(3) == 0 {
		packers.Go(func() { s.pack(ctx) })
	}
	until := time.Now().Add(patience)
	for time.Now().Before(until) && !s.over() {
		s.tend(ctx)
	}
	if packs.IntN(3) == 0 { // what has ended is packed meanwhile, or not
		time.Sleep(time.Duration(packs.Int64N(int64(20 * time.Second))))
		if packs.IntN(2) == 0 {
			s.cut = true
			s.PowerCut()
		}
	}
	s.Quiet()
	cancel()
	packers.Wait()
	until = time.Now().Add(calm)
	for time.Now().Before(until) && !s.over() {
		s.tend(context.Background())
		for _, run := range s.runs {
			s.host.do(func() {
				if found, err := s.host.Open(context.Background(), run.id); err == nil {
					_ = found.Kill(context.Background())
				}
			})
		}
	}
	if !s.host.proc.Alive() {
		s.host = s.newHost("host")
	}
	s.check()
	s.host.do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.host.Close(ctx)
	})
	s.End()
	s.took = time.Since(began)
	time.Sleep(2 * time.Hour) // the goroutines of the dead end meanwhile
}

// doom says when a host dies, if it does.
func (s *simulation) doom(h *simulatedHost) {
	if s.crashes == 0 {
		return
	}
	s.crashes--
	if s.rand.IntN(3) == 0 {
		after := s.span(0, 30*time.Second)
		go func() {
			select {
			case <-time.After(after):
				h.proc.Crash()
			case <-h.proc.Dead:
			}
		}()
		return
	}
	h.proc.DieAt(s.step(
		"write journal", "write events.jsonl", "write events.jsonl", "write events.sum", "truncate events.jsonl", "sync journal", "sync events.jsonl",
		"open journal", "open events.jsonl", "send", "send", "receive", "receive", "dial", "launch", "start plugin"))
}

// step draws one of them, and which of its kind.
func (s *simulation) step(kinds ...string) (kind string, number int) {
	kind = kinds[s.rand.IntN(len(kinds))]
	switch most := s.rand.IntN(3); most {
	case 0:
		return kind, 1 + s.rand.IntN(4)
	default:
		return kind, 1 + s.rand.IntN(40*most)
	}
}

// arrange arranges for the other faults.
func (s *simulation) arrange(ctx context.Context) {
	r := s.rand
	later := func(after time.Duration, do func()) {
		go func() {
			select {
			case <-time.After(after):
				do()
			case <-ctx.Done():
			}
		}()
	}
	if r.IntN(5) == 0 {
		at := r.IntN(2) == 0
		kind, number := s.step("write journal", "write journal", "write exit", "send", "receive", "write stdin", "spawn")
		later(s.span(0, 20*time.Second), func() {
			for _, p := range slices.Concat(s.Procs("shim"), s.Procs("relay")) {
				if at {
					p.DieAt(kind, number)
					continue
				}
				p.Crash()
			}
		})
	}
	if r.IntN(8) == 0 {
		s.cut = true
		later(s.span(0, 40*time.Second), s.PowerCut)
	}
	if r.IntN(8) == 0 {
		s.filled = true
		from := s.span(0, 20*time.Second)
		later(from, func() { s.Fill(true) })
		later(from+s.span(10*time.Millisecond, time.Minute), func() { s.Fill(false) })
		if r.IntN(2) == 0 { // who sees that nothing goes on
			h, run := s.newHost("client"), s.runs[0]
			later(from+s.span(10*time.Millisecond, 30*time.Second), func() {
				h.do(func() {
					if found, err := h.Open(ctx, run.id); err == nil && found.Stop(ctx) == nil {
						s.Count("client: stop on a full disk")
					}
				})
			})
		}
	}
}

func (s *simulation) startRun(ctx context.Context, h *simulatedHost, run *simulatedRun) {
	started, err := h.Start(ctx, run.spec)
	run.mu.Lock()
	run.returned, run.started = true, err == nil
	run.mu.Unlock()
	if err != nil {
		s.Note("start", "failed")
		return
	}
	go h.do(func() {
		result, _ := started.Wait(context.Background())
		if h.proc.Alive() {
			events, _ := os.ReadFile(filepath.Join(started.Dir(), "events.jsonl"))
			run.mu.Lock()
			if run.result = &result; bytes.Contains(events, []byte(`{"type":"run_end"`)) {
				run.events = string(events)
			}
			run.mu.Unlock()
		}
	})
}

// over reports whether all runs have ended that were begun.
func (s *simulation) over() bool {
	if !s.host.proc.Alive() {
		return false
	}
	for _, run := range s.runs {
		run.mu.Lock()
		returned := run.returned
		run.mu.Unlock()
		if dir := store.New(s.Disk() + "/config").Run(run.id); dir.Active() || !returned {
			return false
		}
	}
	return true
}

// tend is what the system's owner does: a host that has died is followed by another,
// which takes up what there is.
func (s *simulation) tend(ctx context.Context) {
	time.Sleep(s.span(50*time.Millisecond, 2*time.Second))
	if h := s.host; h.proc.Alive() {
		h.do(func() {
			_ = h.Recover(ctx)
			if len(h.Orphans()) > 0 { // of a rival that has died, or one that could not be taken up before
				_, _ = h.Adopt(ctx)
			}
		})
		return
	}
	for _, run := range s.runs { // whoever waits for it was killed with the host
		run.mu.Lock()
		run.returned = true
		run.mu.Unlock()
	}
	s.host = s.newHost("host")
	s.doom(s.host)
	hosts := []*simulatedHost{s.host}
	if orphans := s.host.Orphans(); s.rand.IntN(3) == 0 {
		if s.rivals = true; len(orphans) > 0 {
			s.Count("two hosts for a run")
		}
		rival := s.newHost("host")
		s.doom(rival)
		hosts = append(hosts, rival)
	}
	var wg sync.WaitGroup
	for _, h := range hosts {
		if orphans := h.Orphans(); len(orphans) > 0 && s.rand.IntN(2) == 0 {
			s.Count("one run is taken up before others")
			named, after := orphans[s.rand.IntN(len(orphans))], s.span(0, 3*time.Millisecond)
			wg.Go(func() {
				h.do(func() {
					time.Sleep(after)
					_, _ = AdoptRun(ctx, h.Host, named)
				})
			})
		}
		after := s.span(0, 2*time.Millisecond)
		wg.Go(func() {
			h.do(func() {
				time.Sleep(after)
				_ = h.Recover(ctx)
				_, _ = h.Adopt(ctx)
			})
		})
	}
	wg.Wait()
}

// pack packs the journals of runs that have ended, in processes of its own that die at any step.
func (s *simulation) pack(ctx context.Context) {
	r := s.Rand("pack")
	for n := 0; ; n++ {
		select {
		case <-time.After(time.Duration(1 + r.Int64N(int64(5*time.Second)))):
		case <-ctx.Done():
			return
		}
		h := s.newHost("packer")
		if r.IntN(2) == 0 {
			steps := []string{"open journal.packing", "write journal.packing", "sync journal.packing", "rename to journal"}
			h.proc.DieAt(steps[r.IntN(len(steps))], 1)
		}
		h.do(func() {
			_ = h.archive.Pack(ctx)
		})
		for _, run := range s.runs {
			s.remember(run)
		}
	}
}

// remember keeps what a journal is that is packed.
func (s *simulation) remember(run *simulatedRun) {
	src, err := record.Open(store.New(s.Disk() + "/config").Run(run.id).Path("journal"))
	if err != nil {
		return
	}
	defer src.Close()
	data := make([]byte, src.Bytes)
	if _, err := src.ReadAt(data, 0); err != nil || src.Packed == nil {
		return
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.journal == nil {
		s.Count("packed journal")
		run.journal = data
	}
}

// client is a person, in a process of their own.
func (s *simulation) client(ctx context.Context, run *simulatedRun, n int) {
	r := s.Rand(fmt.Sprintf("client %d of %s", n, run.id))
	h := s.newHost("client")
	sleep := func(most time.Duration) bool {
		select {
		case <-time.After(time.Duration(1 + r.Int64N(int64(most)))):
			return ctx.Err() == nil && h.proc.Alive()
		case <-ctx.Done():
			return false
		}
	}
	if !sleep(5 * time.Second) {
		return
	}
	if r.IntN(3) == 0 {
		s.follow(ctx, h, run, r)
		return
	}
	for range 1 + r.IntN(12) {
		if !sleep(4 * time.Second) {
			return
		}
		h.do(func() { s.act(ctx, h, run, r, n) })
	}
}

// follow reads the events as they come.
func (s *simulation) follow(ctx context.Context, h *simulatedHost, run *simulatedRun, r *rand.Rand) {
	next := uint64(1)
	for range 20 {
		h.do(func() {
			found, err := h.Open(ctx, run.id)
			if err != nil {
				return
			}
			reader, writer := io.Pipe()
			go func() { writer.CloseWithError(found.CopyEvents(ctx, writer, next)) }()
			decoder := json.NewDecoder(reader)
			for {
				var raw json.RawMessage
				if decoder.Decode(&raw) != nil {
					reader.Close()
					return
				}
				e, err := parseEvent(raw)
				if err != nil || e.Seq != next {
					s.problem("a follower expected event %d and got %s", next, raw)
				}
				next++
				run.see(e)
			}
		})
		select {
		case <-time.After(time.Duration(1 + r.Int64N(int64(10*time.Second)))):
		case <-ctx.Done():
			return
		}
	}
}

// act does one thing.
func (s *simulation) act(ctx context.Context, h *simulatedHost, run *simulatedRun, r *rand.Rand, n int) {
	what := r.IntN(20)
	found, err := h.Open(ctx, run.id)
	if err != nil {
		return
	}
	count := func(kind string, err error) {
		if err == nil {
			s.Count("client: " + kind)
		}
	}
	switch {
	case what < 10:
		questions, err := record.Questions(found.dir)
		if err != nil || len(questions.Open()) == 0 {
			return
		}
		id := questions.Open()[0].ID
		kind, answer := "approve", func() error { return found.Approve(ctx, id, nil) }
		if what%2 == 0 {
			kind, answer = "deny", func() error { return found.Deny(ctx, id, "no") }
		}
		err = answer()
		count(kind, err)
		if err == nil && h.proc.Alive() {
			run.mu.Lock()
			run.answered[id]++
			run.mu.Unlock()
		}
	case what < 14:
		text := fmt.Sprintf("prompt %d.%d", n, r.Uint32())
		err := found.Send(ctx, text)
		count("send", err)
		if err == nil && h.proc.Alive() {
			run.mu.Lock()
			run.sent = append(run.sent, text)
			run.mu.Unlock()
		}
	case what == 14:
		count("pause", found.Pause(ctx))
		time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
		count("resume", found.Resume(ctx))
	case what < 17:
		count("end", found.End(ctx))
	case what == 17:
		count("stop", found.Stop(ctx))
	case what == 18 && r.IntN(3) == 0:
		count("kill", found.Kill(ctx))
	case what == 19:
		mode := []ApproveMode{ApproveAsk, ApproveAuto, ApproveDeny, ApproveRules}[r.IntN(4)]
		count("set approve", found.SetApprove(ctx, mode))
	}
}
