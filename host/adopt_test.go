//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// next is a further host on the stage, as another process would be.
func next(t *testing.T, s *agents.Stage) *host.Host {
	t.Helper()
	h, err := host.New(s.Options())
	must(t, err)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

// endRun ends a run that a failed test has left.
func endRun(t *testing.T, s *agents.Stage, id string) {
	t.Cleanup(func() {
		if info, err := shim.ReadInfo(filepath.Join(s.Config, "runs", id)); err == nil {
			if conn, err := shim.Dialer(shim.Connect).Dial(context.Background(), info); err == nil {
				_ = conn.Kill(shim.Stop{Reason: "kill", By: "test"})
				conn.Close()
			}
		}
	})
}

// wantWhole compares the events of a run that has ended with its replay, and wants
// that the agent's lines 1 … n are there, each once.
func wantWhole(t *testing.T, h *host.Host, r *host.Run, n int) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(r.Dir(), "events.jsonl"))
	must(t, err)
	if d := agents.Difference(string(replay(t, h, r.ID())), string(got)); d != "" {
		t.Errorf("replay: %s", d)
	}
	agents.Comparable(t, got)
	if ends := bytes.Count(got, []byte(`{"type":"run_end"`)); ends != 1 {
		t.Errorf("it has ended %d times", ends)
	}
	rest := got
	for i := range n {
		_, after, found := bytes.Cut(rest, fmt.Appendf(nil, `"delta":"line %d\n"`, i+1))
		if !found {
			t.Fatalf("line %d is not where it should be", i+1)
		}
		rest = after
	}
	if lines := bytes.Count(got, []byte(`"delta":"line `)); lines != n {
		t.Errorf("%d lines, want %d", lines, n)
	}
}

// A detached run goes from host to host while its agent talks and asks. Of those
// that want it, one gets it each time, and nobody who follows it notices.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	rounds := 25
	if testing.Short() {
		rounds = 10
	}
	lines := rounds * 40
	first := next(t, s)
	r := s.Start(first, host.RunSpec{
		Agent: "fake", Prompt: "leave setsid\nticks " + strconv.Itoa(lines) + " 1\nask go", Detached: true, Permissions: host.Permissions{Approve: host.ApproveAsk},
	})
	endRun(t, s, r.ID())
	if host.AnyUnhosted(first) || host.AnyUnhosted(next(t, s)) {
		t.Error("it is hosted, and said not to be")
	}
	var hosts sync.Mutex // who looks for a host waits for the one that is coming
	watch := s.Options()
	watch.OnOrphan = func(context.Context, string) error { hosts.Lock(); defer hosts.Unlock(); return nil }
	watcher, err := host.New(watch)
	must(t, err)
	t.Cleanup(func() { _ = watcher.Close(context.Background()) })
	follower, err := watcher.Open(context.Background(), r.ID())
	must(t, err)
	followed := make(chan []byte, 1)
	go func() { followed <- events(t, follower) }()
	owner := first
	for round := range rounds {
		time.Sleep(time.Duration(round%5) * 7 * time.Millisecond)
		must(t, owner.Close(context.Background()))
		if round == 0 {
			if end, _ := r.Wait(context.Background()); !errors.Is(end.Err, pluginapi.CodeHostGone) {
				t.Errorf("who waits for it at the closed host is told %v", end.Err)
			}
			if ids := watcher.Orphans(); len(ids) != 1 || ids[0] != r.ID() || !host.AnyUnhosted(watcher) {
				t.Errorf("orphans: %v; any without a host: %v", ids, host.AnyUnhosted(watcher))
			}
			must(t, watcher.Recover(context.Background())) // is not to end it
		}
		hosts.Lock()
		const rivals = 3
		var wg sync.WaitGroup
		var got [rivals]*host.Run
		var all [rivals]*host.Host
		for i := range rivals {
			all[i] = next(t, s)
			wg.Go(func() {
				if i == 0 { // somebody waits for this one
					run, err := host.AdoptRun(context.Background(), all[i], r.ID())
					if err != nil {
						t.Errorf("round %d: %v", round, err)
					}
					got[i] = run
					return
				}
				runs, err := all[i].Adopt(context.Background())
				if err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				if len(runs) > 0 {
					got[i] = runs[0]
				}
			})
		}
		wg.Wait()
		hosts.Unlock()
		owners := 0
		for i, run := range got {
			if run != nil {
				owners++
				owner, r = all[i], run
			} else {
				must(t, all[i].Close(context.Background()))
			}
		}
		if owners != 1 {
			t.Fatalf("round %d: %d hosts have the run", round, owners)
		}
	}
	agents.Eventually(t, time.Minute, "the run waits", func() bool { return r.Info().State == "waiting" })
	must(t, follower.Approve(context.Background(), "", nil))
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v, %+v", end.State, end.Err, end.End)
	}
	wantWhole(t, owner, r, lines)
	want, err := os.ReadFile(filepath.Join(r.Dir(), "events.jsonl"))
	must(t, err)
	if got := <-followed; !bytes.Equal(got, want) {
		t.Errorf("who followed it has %s", agents.Difference(string(got), string(want)))
	}
	must(t, owner.Close(context.Background()))
	if left := agents.OfRun(r.ID()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// killedHost starts a detached run in a process of its own, which it kills as soon
// as the run has told so much.
func killedHost(t *testing.T, s *agents.Stage, spec host.RunSpec, mark string) (id string) {
	t.Helper()
	spec.Agent, spec.Detached, spec.Timeout = "fake", true, 20*time.Second
	cmd := agents.HostCommand(agents.Hosting{Options: s.Options(), Spec: spec})
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	id = agents.ReadUntil(out, mark)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if id == "" {
		t.Fatalf("the host said no %q", mark)
	}
	endRun(t, s, id)
	return id
}

// One run is taken up by its name, and the others stay as they are. Where nothing is to be done, nothing is.
func TestAdoptRun(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	named := killedHost(t, s, host.RunSpec{Name: "mine", Prompt: "lines 10\nask go", Permissions: host.Permissions{Approve: host.ApproveAsk}}, `"to":"waiting"`)
	other := killedHost(t, s, host.RunSpec{Prompt: "lines 10\nask go", Permissions: host.Permissions{Approve: host.ApproveAsk}}, `"to":"waiting"`)
	h := next(t, s)
	ctx := context.Background()
	r, err := host.AdoptRun(ctx, h, "mine")
	must(t, err)
	if r == nil || r.ID() != named {
		t.Fatalf("%v is taken up", r)
	}
	if left := h.Orphans(); !slices.Equal(left, []string{other}) {
		t.Errorf("without a host are %v, want %s", left, other)
	}
	for what, who := range map[string]struct {
		h   *host.Host
		ref string
	}{"a second time": {h, named}, "by another host": {next(t, s), named}, "no run": {h, "nothing"}} {
		if again, err := host.AdoptRun(ctx, who.h, who.ref); again != nil || err != nil {
			t.Errorf("%s: %v, %v", what, again, err)
		}
	}
	agents.Eventually(t, time.Minute, "it has told again what it asks", func() bool { return r.Waits("go") })
	must(t, r.Approve(ctx, "", nil))
	if end, _ := r.Wait(ctx); end.State != "completed" {
		t.Errorf("%s, %v, %+v", end.State, end.Err, end.End)
	}
	wantWhole(t, h, r, 10)
	if again, err := host.AdoptRun(ctx, h, named); again != nil || err != nil {
		t.Errorf("ended: %v, %v", again, err)
	}
	rest, err := h.Adopt(ctx)
	must(t, err)
	if len(rest) != 1 || rest[0].ID() != other {
		t.Fatalf("then %v are taken up", rest)
	}
	must(t, rest[0].Kill(ctx))
	_, _ = rest[0].Wait(ctx)
}

// What is asked of a run while it has no host is done, and told by the next.
func TestAnsweredWithoutHost(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	id := killedHost(t, s, host.RunSpec{Prompt: "lines 10\nask one\nask two", Permissions: host.Permissions{Approve: host.ApproveAsk}}, `"to":"waiting"`)
	h := next(t, s)
	r, err := h.Open(context.Background(), id)
	must(t, err)
	must(t, r.Approve(context.Background(), "", nil))
	if err := r.Deny(context.Background(), "one", ""); !errors.Is(err, pluginapi.CodeAlreadyAnswered) {
		t.Errorf("a second answer: %v", err)
	}
	if end, _ := r.Wait(context.Background()); !errors.Is(end.Err, pluginapi.CodeHostGone) {
		t.Errorf("without a host: %v", end.Err)
	}
	runs, err := h.Adopt(context.Background())
	must(t, err)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	if again, err := h.Adopt(context.Background()); err != nil || len(again) > 0 {
		t.Errorf("a second time: %v, %v", again, err)
	}
	r = runs[0]
	for e, err := range r.Events(context.Background(), 1) {
		must(t, err)
		if e.Type == "approval_request" && bytes.Contains(e.Raw, []byte(`"two"`)) {
			break
		}
	}
	must(t, r.Deny(context.Background(), "two", "no"))
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v, %+v", end.State, end.Err, end.End)
	}
	got := events(t, r)
	for _, want := range []string{`"delta":"one granted\n"`, `"delta":"two denied\n"`} {
		if bytes.Count(got, []byte(want)) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	wantWhole(t, h, r, 10)
}

// An agent that ends while nobody hosts it leaves nothing that waits for a host.
func TestEndsWithoutHost(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	id := killedHost(t, s, host.RunSpec{Prompt: "say here\nsleep 0.3\nleave setsid\nlines 20\nexit 3"}, `"delta":"here`)
	agents.Eventually(t, time.Minute, "all processes leave", func() bool { return len(agents.OfRun(id)) == 0 })
	h := next(t, s)
	if ids := h.Orphans(); len(ids) > 0 || !host.AnyUnhosted(h) {
		t.Errorf("orphans: %v; any without a host: %v", ids, host.AnyUnhosted(h))
	}
	must(t, h.Recover(context.Background()))
	if host.AnyUnhosted(h) {
		t.Error("it has ended, and is said to have no host")
	}
	r, err := h.Open(context.Background(), id)
	must(t, err)
	if end, _ := r.Wait(context.Background()); end.State != "failed" || !errors.Is(end.Err, pluginapi.CodeAgentFailed) || *end.End.ExitCode != 3 {
		t.Errorf("%s, %v, %+v", end.State, end.Err, end.End)
	}
	wantWhole(t, h, r, 20)
}

// Deadlines count while no host lives.
func TestDeadlinesWithoutHost(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	idle := killedHost(t, s, host.RunSpec{Prompt: "say here\nleave daemon\nsleep 1000", Limits: host.Limits{IdleTimeout: 3 * time.Second, Grace: 50 * time.Millisecond}}, `"delta":"here`)
	agents.Eventually(t, time.Minute, "all processes leave", func() bool { return len(agents.OfRun(idle)) == 0 })
	h := next(t, s)
	must(t, h.Recover(context.Background()))
	r, err := h.Open(context.Background(), idle)
	must(t, err)
	if end, _ := r.Wait(context.Background()); end.State != "timed_out" || !errors.Is(end.Err, pluginapi.CodeInactivityTimeout) {
		t.Errorf("%s, %v, %+v", end.State, end.Err, end.End)
	}
	wantWhole(t, h, r, 0)
}

// The plugin that a detached run was started with is gone, or has failed it, when
// the next host comes: the run ends, and says why.
func TestAdoptWithoutPlugin(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	id := killedHost(t, s, host.RunSpec{Prompt: "lines 20\nsay here\nsleep 1000"}, `"delta":"here`)
	gone := s.Plugins + ".gone"
	must(t, errors.Join(os.Rename(s.Plugins, gone), os.Rename(s.Config+"/plugins", gone+"/verified")))
	h := next(t, s)
	runs, err := h.Adopt(context.Background())
	must(t, err)
	if len(runs) != 1 || runs[0].ID() != id {
		t.Fatalf("runs: %v", runs)
	}
	if end, _ := runs[0].Wait(context.Background()); end.State != "failed" || end.End.Code != pluginapi.CodePluginChanged {
		t.Errorf("%s, %v, %+v", end.State, end.Err, end.End)
	}
	if left := agents.OfRun(id); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	before := firstEvents(t, runs[0])
	must(t, errors.Join(os.RemoveAll(s.Config+"/plugins"), os.Rename(gone+"/verified", s.Config+"/plugins"), os.Rename(gone, s.Plugins)))
	again := replay(t, next(t, s), id) // when it is back, all that is known can be told
	if n := bytes.Count(again, []byte(`"delta":"line `)); n != 20 || bytes.Count(before, []byte(`"delta":"line `)) != 20 {
		t.Errorf("%d lines in a replay of\n%s", n, before)
	}
}

// The plugin has been upgraded when the next host comes: the run goes on with the
// build that it began with.
func TestAdoptAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	first := next(t, s)
	r := s.Start(first, host.RunSpec{Agent: "fake", Prompt: "lines 20\nask go\nlines 20", Detached: true, Permissions: host.Permissions{Approve: host.ApproveAsk}})
	endRun(t, s, r.ID())
	wantState(t, r, "waiting")
	must(t, first.Close(context.Background()))
	for _, file := range []string{"amux-plugin.toml", "describe.json"} {
		replaceIn(t, filepath.Join(s.Plugins, "fake", file), `"1.0.0"`, `"2.0.0"`)
	}
	h := next(t, s)
	runs, err := h.Adopt(context.Background())
	must(t, err)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	must(t, runs[0].Approve(context.Background(), "go", nil))
	if end, _ := runs[0].Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if lines := bytes.Count(firstEvents(t, runs[0]), []byte(`"delta":"line `)); lines != 40 {
		t.Errorf("%d lines", lines)
	}
}

// hosted is a run whose host is the test itself, which leaves when it likes.
type hosted struct {
	id   string
	dir  *store.Run
	conn *shim.Launched
	next shim.Spawn // what the last plan is to start
}

// relive hosts a run as the host of a model, a run that has ended, has hosted that:
// until the agent of an attempt is to be started, or has been.
func relive(t *testing.T, s *agents.Stage, model string, attempt int, start bool) *hosted {
	t.Helper()
	all := store.New(s.Config)
	meta, err := all.Run(model).ReadMeta()
	must(t, err)
	meta.RunID = ulid.Make().String()
	meta.TempDir = filepath.Join(s.Temp, "agent-mux-"+meta.RunID)
	h := &hosted{id: meta.RunID}
	h.dir, err = all.Create(h.id)
	must(t, err)
	must(t, errors.Join(h.dir.MarkActive(), h.dir.WriteMeta(meta), os.Mkdir(meta.TempDir, 0o700)))
	h.conn, err = shim.Launch(agents.Shim(t), h.dir.Dir, shim.Hello{
		Version: shim.Version, Nonce: "right", Host: true, RunID: h.id, TempDir: meta.TempDir, Detached: true,
		Socket: filepath.Join(s.Runtime, strings.ToLower(h.id)+".sock"),
	})
	must(t, err)
	endRun(t, s, h.id)
	for _, rec := range records(t, all.Run(model).Dir) {
		switch rec.Kind {
		case journal.KindState, journal.KindRetry, journal.KindInput, journal.KindPlan:
			must(t, h.conn.Append(rec.Kind, rec.Payload))
			if rec.Kind != journal.KindPlan {
				continue
			}
			var plan journal.Plan
			must(t, rec.Decode(&plan))
			h.next = shim.Spawn{
				Number: plan.Spawn, Program: plan.Program, Args: plan.Args, Cwd: plan.Cwd, Stdin: true, Retry: plan.Attempt == 1,
				Env: append(os.Environ(), process.RunEnv+"="+h.id),
			}
			if plan.Attempt == attempt && !start {
				return h
			}
		case journal.KindSpawned:
			must(t, h.conn.Spawn(h.next))
			if h.next.Number == attempt {
				return h
			}
		case journal.KindEffect:
			var effect journal.Effect
			must(t, rec.Decode(&effect))
			if effect.Kind == "write" {
				must(t, h.conn.Write(shim.EffectID{N: effect.N, K: effect.K}, []byte("prompt\n")))
			}
		case journal.KindExit:
			agents.Eventually(t, time.Minute, "the attempt ends", func() bool {
				return slices.ContainsFunc(records(t, h.dir.Dir), func(rec journal.Record) bool { return rec.Kind == journal.KindExit })
			})
		}
	}
	t.Fatalf("the model has no attempt %d", attempt)
	return nil
}

// records are what stands in a run's journal.
func records(t *testing.T, dir string) (all []journal.Record) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "journal"))
	must(t, err)
	defer file.Close()
	info, err := file.Stat()
	must(t, err)
	reader, err := journal.NewReader(file)
	must(t, err)
	for {
		rec, err := reader.Next(info.Size())
		if err != nil {
			return all
		}
		all = append(all, rec)
	}
}

// The host dies when an agent has been started, or is about to be, and was not told
// what for. The next one tells it, once, also in a further attempt.
func TestAdoptBeforeTheFirstPrompt(t *testing.T) {
	t.Parallel()
	for _, attempt := range []int{1, 2} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("attempt %d, started late %v", attempt, late), func(t *testing.T) {
				t.Parallel()
				s := agents.NewStage(t, "fake", "healthy")
				gate := filepath.Join(s.Root, "gate") // while it is there no plugin starts
				replaceIn(t, filepath.Join(s.Plugins, "fake", agents.Executable("fake")), "exec ", "while [ -e "+gate+" ]; do sleep 0.01; done\nexec ")
				spec := host.RunSpec{
					Agent: "fake", Detached: true, Workspace: host.Workspace{Cwd: t.TempDir()}, Retry: soon(2),
					Prompt: "shell\nread -r prompt; echo hello; echo turn; case $prompt in prompt*) echo t prompted;; esac; echo end; sed 's/^/t more /'",
				}
				if attempt == 2 {
					spec.Prompt = strings.Replace(spec.Prompt, "echo turn;", "echo turn; if mkdir once; then echo do fail OVERLOADED; exit 1; fi;", 1)
				}
				first := next(t, s)
				model := s.Start(first, spec)
				if end, _ := model.Wait(context.Background()); end.State != "completed" {
					t.Fatalf("%s, %v", end.State, end.Err)
				}
				must(t, errors.Join(os.RemoveAll(filepath.Join(spec.Cwd, "once")), first.Close(context.Background())))
				dead := relive(t, s, model.ID(), attempt, !late)
				dead.dir.Unlock()
				heir := next(t, s)
				adopt := func() *host.Run {
					runs, err := heir.Adopt(context.Background())
					must(t, err)
					if len(runs) != 1 {
						t.Fatalf("%d runs", len(runs))
					}
					return runs[0]
				}
				if !late {
					dead.conn.Leave()
				} else {
					// The start gets into the journal when the heir has read it, and not
					// yet acted on it. It is somebody else's, so the heir cannot write to
					// the agent: that is for the next one.
					must(t, os.WriteFile(gate, nil, 0o600))
					adopt()
					info, err := shim.ReadInfo(dead.dir.Dir)
					must(t, err)
					starter, err := shim.Dialer(shim.Connect).DialHost(context.Background(), info, shim.Hello{})
					must(t, err)
					must(t, starter.Spawn(dead.next))
					must(t, os.Remove(gate))
					agents.Eventually(t, time.Minute, "the prompt is recorded", func() bool { return prompts(t, dead.dir.Dir) == attempt })
					must(t, heir.Close(context.Background()))
					must(t, starter.Close())
					dead.conn.Leave()
					heir = next(t, s)
				}
				r := adopt()
				agents.Eventually(t, time.Minute, "the prompt is recorded", func() bool { return prompts(t, r.Dir()) == attempt })
				if end, _ := r.Wait(context.Background()); end.State != "completed" {
					t.Errorf("%s, %v", end.State, end.Err)
				}
				got := firstEvents(t, r)
				if told, more := bytes.Count(got, []byte(`"delta":"prompted\n"`)), bytes.Count(got, []byte(`"delta":"more`)); told != 1 || more > 0 || prompts(t, r.Dir()) != attempt {
					t.Errorf("it was prompted %d times, and %d times more", told, more)
				}
				if d := agents.Difference(string(replay(t, heir, r.ID())), string(got)); d != "" {
					t.Errorf("replay: %s", d)
				}
				must(t, heir.Close(context.Background()))
				wantGone(t, s)
			})
		}
	}
}

// prompts counts the first prompts of a run's attempts.
func prompts(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, rec := range records(t, dir) {
		var in journal.Input
		if rec.Kind == journal.KindInput && rec.Decode(&in) == nil && in.First {
			n++
		}
	}
	return n
}
