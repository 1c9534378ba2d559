package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/enclosure"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/host/internal/worktree"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/egress"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// launch is a run that is being started. Whatever fails, undo leaves nothing.
type launch struct {
	h       *Host
	spec    RunSpec
	agent   *pluginapi.Agent
	plugin  registry.Verified
	program program.Agent
	meta    store.Meta
	dir     *store.Run
	shim    *shim.Launched
	process *adapter.Process
	options *pb.RunOptions
	nonce   string
	// baseline is taken before the agent starts; nil: nobody asked for it.
	baseline *baseline
	worktree *worktree.Plan // that the run will have; nil: none
	slot     *slot          // in the host's queue
	away     *away          // where the agent is; nil: here
	attempt  int            // from 1
	began    time.Time      // the first one
	// maker is the program that makes the run's sandbox; empty: it has none.
	maker   string
	secrets []egress.Secret // that stay out of it
}

// Start validates the spec, asks the adapter for a plan and starts the agent.
// An error means that nothing of the agent was started and nothing is left on disk; the
// plugin may have been, and stays with the host. Where
// Options.MaxRuns runs go on already, the run is queued: only its spec was looked at,
// and what goes wrong later is its end. When ctx ends before Start returns, the start is given up; after that it has no effect
// on the run, which ends by Stop, Kill or Close.
func (h *Host) Start(ctx context.Context, spec RunSpec) (_ *Run, retErr error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	env := spec.Environ
	if env == nil {
		env = h.opts.Env
	}
	spec.StartedBy = startedBy(h.store, env)
	l := &launch{h: h, spec: spec, attempt: 1}
	defer func() {
		if retErr != nil {
			l.undo()
		}
		retErr = leave(retErr)
	}()
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	if err := prepare(h); err != nil {
		return nil, err
	}
	if l.plugin, err = h.registry.Verify(l.plugin.Plugin); err != nil {
		return nil, err
	}
	// The plugin's start is the longest part, so it begins first, and nothing waits for it that does not need it.
	patience := adapter.NewPatience(h.limits.Call)
	connected := make(chan error, 1)
	since := time.Now()
	begun, err := h.plugins.Begin(l.plugin)
	if err != nil {
		return nil, err
	}
	go func() {
		process, err := begun.Wait(ctx)
		patience.Spend(time.Since(since))
		l.process = process
		connected <- err
	}()
	// The folder is made after that: the new process would wait for a processor that this one keeps busy, up to a
	// millisecond where there are two.
	select {
	case <-begun.Forked:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.slot = h.opts.Queue.take()
	queued := l.slot.waits()
	if err := l.createDir(queued); err != nil {
		return nil, err
	}
	if err := l.makeWorktree(ctx); err != nil {
		return nil, err
	}
	if err := l.settleThere(ctx); err != nil {
		return nil, err
	}
	if !queued && l.spec.Prepare == nil {
		l.takeBaseline(ctx)
	}
	shimErr := l.launchShim()
	if err := cmp.Or(<-connected, shimErr); err != nil {
		return nil, err
	}
	if queued {
		if l.away != nil {
			l.away.close() // until it is the run's turn
		}
		if err := h.plugins.Check(ctx, l.process, l.plugin); err != nil {
			return nil, err
		}
		return l.queue(ctx)
	}
	if err := l.prepareFolder(ctx); err != nil {
		return nil, err
	}
	spawn, record, err := l.prepareSpawn(ctx, patience)
	if err != nil {
		return nil, err
	}
	return l.begin(ctx, spawn, record)
}

// maxPlans is how often a plan is asked for when the plugin dies instead.
const maxPlans = 3

// makePlan asks the adapter, and once more if its process died, perhaps of another
// run: a plan is pure.
func (l *launch) makePlan(ctx context.Context, patience *adapter.Patience) (*pluginapi.Plan, error) {
	plan, err := l.plan(ctx, patience)
	if !l.process.Died(err) {
		if lie := l.h.plugins.Check(ctx, l.process, l.plugin); lie != nil {
			return nil, lie
		}
	}
	for tries := 1; err != nil && tries < maxPlans && !patience.Over() && l.process.Died(err); tries++ {
		since := time.Now()
		l.process, err = l.h.plugins.Get(ctx, l.plugin)
		patience.Spend(time.Since(since))
		if err == nil {
			plan, err = l.plan(ctx, patience)
		}
	}
	if err != nil {
		l.h.plugins.Hangs(ctx, l.process, err)
	}
	return plan, err
}

// check is everything that can be wrong before anything is made.
func (l *launch) check(ctx context.Context) error {
	if err := l.spec.validate(); err != nil {
		return err
	}
	if err := l.h.opts.checkSchema(l.spec.JSONSchema); err != nil {
		return err
	}
	plugin, agent, launch, err := l.h.catalog.find(l.spec.Agent, l.spec.Launch)
	if err != nil {
		return err
	}
	l.plugin.Plugin, l.agent, l.spec.Launch = plugin, agent, launch
	if err := l.spec.checkCapabilities(agent); err != nil {
		return err
	}
	if err := l.spec.checkSpent(ctx, &l.h.archive); err != nil {
		return err
	}
	if err := l.checkPlace(ctx); err != nil {
		return err
	}
	if l.program, err = l.findProgram(ctx); err != nil {
		return err
	}
	if err := l.checkSandbox(ctx); err != nil {
		return err
	}
	if l.spec.RunID == "" {
		l.spec.RunID = ulid.Make().String()
	}
	l.options = l.spec.options(agent)
	if err := loadAttachments(l.options.Attachments); err != nil {
		return err
	}
	if l.away != nil {
		l.away.moveFiles(l)
	}
	return l.planWorktree(ctx)
}

// checkSandbox sees that there can be one.
func (l *launch) checkSandbox(ctx context.Context) (err error) {
	box := l.spec.Sandbox
	if box == nil {
		return nil
	}
	if l.agent.GetElsewhere() {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s works on another machine, where no sandbox is made (--sandbox)", l.spec.Agent)
	}
	cwd := l.spec.Cwd
	if l.spec.Worktree != nil {
		cwd = ""
	}
	at := caller(l.agent, l.world(), l.spec.Cwd, l.env())
	if err := enclosure.Policy(*box).Check(at.Home, cwd); err != nil {
		return err
	}
	if l.maker, err = enclosure.Find(ctx, process.EnvValue(l.h.opts.Env, "PATH")); err != nil {
		return err
	}
	if err := l.withhold(box.Secrets); err != nil {
		return err
	}
	helper := filepath.Join(filepath.Dir(l.h.opts.ShimPath), enclosure.Helper)
	if command.Executable(helper) == "" {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the sandbox needs %s, which is missing or not executable", helper).
			WithHint("amux-sandbox belongs beside the amux program; see: amux doctor")
	}
	return nil
}

// withhold puts placeholders in the place of secrets: nothing of the run has their values from
// here on, but the program around its sandbox.
func (l *launch) withhold(secrets []string) error {
	for _, text := range secrets {
		name, host, _ := strings.Cut(text, "=")
		value, ok := l.spec.Env[name]
		if !ok {
			value = process.EnvValue(l.world(), name)
		}
		if len(value) < minSecret {
			return invalid("--sandbox-secret %s: the environment has no such variable, or one of fewer than %d characters", text, minSecret).WithHint("export it, or give it by --env")
		}
		placeholder, err := placeholderFor(value)
		if err != nil {
			return err
		}
		l.secrets = append(l.secrets, egress.Secret{Host: host, Placeholder: placeholder, Value: value})
	}
	if len(l.secrets) == 0 {
		return nil
	}
	replace := func(text string) string {
		for _, s := range l.secrets {
			text = strings.ReplaceAll(text, s.Value, s.Placeholder)
		}
		return text
	}
	world := slices.Clone(l.world())
	for i := range world {
		world[i] = replace(world[i])
	}
	l.spec.Environ, l.spec.Env = world, maps.Clone(l.spec.Env)
	for name, value := range l.spec.Env {
		l.spec.Env[name] = replace(value)
	}
	if l.spec.Launch != nil {
		launch := *l.spec.Launch
		launch.Env = maps.Clone(launch.Env)
		for name, value := range launch.Env {
			launch.Env[name] = replace(value)
		}
		l.spec.Launch = &launch
	}
	return nil
}

// minSecret is the shortest secret: a shorter text may stand in others by chance.
const minSecret = 8

// placeholderFor is what an agent has in place of a secret: it begins like it, for programs
// that look at that, and is as long.
func placeholderFor(value string) (string, error) {
	random := make([]byte, max(len(value), 16))
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	prefix := ""
	if i := strings.LastIndexByte(value[:min(len(value)/2, 14)], '-'); i > 0 {
		prefix = value[:i+1]
	}
	return (prefix + "placeholder" + hex.EncodeToString(random))[:max(len(value), len(prefix)+27)], nil
}

// createDir makes the run's directory and temp dir, writes run.json and the
// first records.
func (l *launch) createDir(queued bool) error {
	id := l.spec.RunID
	dir, err := l.h.store.Create(id)
	if errors.Is(err, os.ErrExist) {
		return invalid("a run with the id %s exists already", id).WithHint("leave out --run-id")
	}
	if err != nil {
		return folders.Error("config folder", l.h.opts.ConfigDir, err)
	}
	l.dir = dir
	spec, err := json.Marshal(l.spec)
	if err != nil {
		return err
	}
	start, _ := process.Start(os.Getpid())
	l.meta = store.Meta{
		Version: 1, RunID: id, Name: l.spec.Name, Agent: l.spec.Agent, Spec: spec, EnvNames: slices.Sorted(maps.Keys(l.spec.Env)),
		Cwd: l.spec.Cwd, Project: l.h.opts.ProjectDir, Tags: l.spec.Tags, Created: time.Now().UTC(),
		TempDir: filepath.Join(l.h.opts.TempDir, "agent-mux-"+id),
		Plugin:  l.plugin.Plugin.Name, PluginVersion: l.plugin.Plugin.Version, PluginHash: l.plugin.SHA256,
		AmuxVersion: l.h.opts.Version, HostPID: os.Getpid(), HostStart: start, BootID: process.BootID(),
	}
	// Marked before it can be seen: who dies here leaves nothing that looks alive.
	err = l.h.archive.ClaimName(l.meta.Name, func() error { return errors.Join(dir.MarkActive(), dir.WriteMeta(l.meta)) })
	if err == nil {
		if err := os.Mkdir(l.meta.TempDir, 0o700); err != nil {
			return folders.Error("temp folder", l.h.opts.TempDir, err)
		}
		err = l.firstRecords(queued)
	}
	if taken, ok := errors.AsType[*pluginapi.Error](err); ok {
		return taken
	}
	if err != nil {
		return folders.Error("folder of the run", dir.Dir, err)
	}
	return nil
}

func (l *launch) firstRecords(queued bool) error {
	w, err := l.h.edges.writer(l.dir)()
	if err != nil {
		return err
	}
	defer w.Close()
	err = w.Append(journal.KindState, journal.Encode(journal.State{To: engine.Queued}))
	if err != nil || queued {
		return err
	}
	return w.Append(journal.KindState, journal.Encode(itsTurn))
}

var itsTurn = journal.State{From: engine.Queued, To: engine.Starting}

func (l *launch) launchShim() error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	l.nonce = hex.EncodeToString(nonce[:])
	err := process.Starting(func() (pid int, err error) {
		hello := shim.Hello{
			Version: shim.Version, Nonce: l.nonce, Host: true, RunID: l.meta.RunID, TempDir: l.meta.TempDir,
			Socket: folders.Socket(l.h.opts.RuntimeDir, l.meta.RunID), Detached: l.spec.Detached,
			HostDir: l.h.plugins.Folder, HostPID: l.meta.HostPID, HostStart: l.meta.HostStart,
		}
		if l.away == nil {
			l.shim, err = l.h.edges.launch(l.h.opts.ShimPath, l.dir.Dir, hello)
		} else {
			hello.Alone = l.away.place.AloneTime()
			l.shim, err = l.h.edges.relay(l.away.places.relay(), l.dir.Dir, l.h.opts.Env, hello)
		}
		if err != nil {
			return 0, err
		}
		return l.shim.Welcome.PID, nil
	})
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok && refused.Code == pluginapi.CodeNetwork && l.away != nil {
		return l.away.unreachable(err)
	}
	why, hint := l.shimFailed(err)
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok && refused.Code == code.DiskFull || fault.Full(err) {
		return pluginapi.Errorf(pluginapi.CodeDiskFull, "the folder of the run cannot be written: %s", why).WithHint("%s", hint)
	}
	return pluginapi.Errorf(pluginapi.CodeSpawn, "the run's shim cannot be started: %s", why).WithHint("%s", hint)
}

// shimFailed says why there is no shim: the shim's own words, those in its log if it died
// of something, or the system's.
func (l *launch) shimFailed(err error) (why, hint string) {
	const fallback = "amux-shim belongs beside the amux program; see: amux doctor"
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok {
		return refused.Msg, cmp.Or(refused.Hint, fallback)
	}
	if errors.Is(err, shim.ErrGone) {
		said, _ := os.ReadFile(l.dir.Path("shim.log")) // by a program of ours
		last := sandbox.Telling(said)
		if why, hint := fault.Death(last); why != "" {
			return why, hint
		}
		return "it ended before it was ready: " + cmp.Or(last, err.Error()), fallback
	}
	why, hint = fault.Start(l.h.opts.ShimPath, "", err)
	return why, cmp.Or(hint, fallback)
}

// plan asks the adapter.
func (l *launch) plan(ctx context.Context, patience *adapter.Patience) (*pluginapi.Plan, error) {
	options := l.options
	options.Env = l.env()
	at := caller(l.agent, l.world(), l.spec.Cwd, options.Env)
	if l.away != nil {
		if err := l.away.open(ctx, l.meta.RunID); err != nil {
			return nil, err
		}
		at.Os, at.Arch = l.away.world.OS, l.away.world.Arch
	}
	req := &pb.PlanRequest{
		Agent: l.spec.adapter(), Launch: l.spec.Launch.proto(), Caller: at, Options: options,
		RunId: l.meta.RunID, TempDir: l.temp(), Program: l.program.Path, ProgramVersion: l.program.Version,
		PluginPath: l.plugin.Path, SessionId: sessionID(l.meta.RunID), Attempt: uint32(l.attempt),
	}
	return l.process.Plan(ctx, req, l.exec, patience)
}

// sessionID makes a UUID of a run id: both are 128 bits, and the run id is as
// unique as a UUID has to be. Version and variant bits are set.
func sessionID(runID string) string {
	id, err := ulid.ParseStrict(runID)
	if err != nil {
		return ""
	}
	b := id.Bytes()
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b)
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// prepareSpawn asks for a plan, makes of it what the shim starts, and before the first
// attempt tells RunSpec.OnPlan.
func (l *launch) prepareSpawn(ctx context.Context, patience *adapter.Patience) (s shim.Spawn, record journal.Plan, err error) {
	if l.away != nil {
		defer l.away.close() // until the next attempt
	}
	plan, err := l.makePlan(ctx, patience)
	if err != nil {
		return s, record, err
	}
	order := spawn.Order{
		Plugin: l.plugin.Plugin.Name, Agent: l.agent, Version: l.program.Version, Launch: l.spec.Launch.proto(),
		World: l.world(), Env: l.env(), Cwd: l.spec.Cwd, TempDir: l.temp(), RunID: l.meta.RunID, PTY: l.spec.PTY,
		Texts: []string{l.spec.Prompt, l.spec.SystemPrompt}, Beside: l.beside(), Attempt: l.attempt,
		Idle: l.spec.IdleTimeout, Left: l.timeLeft(), Machine: l.machine(ctx),
		Spawn: shim.Spawn{Retry: l.attempt < l.spec.retry().Attempts(), Grace: l.spec.Grace, Umask: l.spec.Umask},
	}
	if trace := l.spec.Trace; trace != nil {
		ids := trace.IDs(l.meta.RunID)
		order.TraceParent = ids.TraceParent()
		if ids.Parent != [8]byte{} {
			order.TraceState = trace.State
		}
	}
	if box := l.spec.Sandbox; box != nil {
		order.Sandbox = &spawn.Sandbox{
			Policy:  enclosure.Policy(*box),
			Program: l.maker, Caller: caller(l.agent, l.world(), l.spec.Cwd, l.env()),
			Secrets: l.secrets, Folders: l.spec.AddDirs, Hidden: []string{l.h.opts.ConfigDir, l.h.opts.RuntimeDir},
		}
		order.Sandbox.Files = append(slices.Clone(l.spec.Files), l.plugin.Path)
		for _, server := range l.spec.MCPServers {
			order.Sandbox.Files = append(order.Sandbox.Files, command.Look(server.Command, l.world(), l.spec.Cwd))
		}
	}
	if parent := l.spec.Parent; parent != nil {
		order.Spawn.ParentPID, order.Spawn.ParentStart = parent.PID, parent.Start
	}
	if s, record, err = order.Prepare(plan); err != nil || l.attempt > 1 || l.spec.OnPlan == nil {
		return s, record, err
	}
	return s, record, l.spec.OnPlan(ctx, Planned{
		Agent: l.spec.Agent, Plugin: l.plugin.Plugin.Name, PluginVersion: l.plugin.Plugin.Version, Trust: l.plugin.Plugin.Trust,
		Program: record.Program, Args: record.Args, Cwd: record.Cwd,
	})
}

// timeLeft is the run's limit of time for this attempt; 0 if there is none.
func (l *launch) timeLeft() time.Duration {
	if l.spec.Timeout <= 0 || l.began.IsZero() {
		return max(l.spec.Timeout, 0)
	}
	return max(l.spec.Timeout-time.Since(l.began), time.Millisecond)
}

// world is the caller's environment.
func (l *launch) world() []string {
	if l.spec.Environ != nil {
		return l.spec.Environ
	}
	return l.h.opts.Env
}

// env are the variables that the run and its agent's command set. SandboxEnv is never the
// user's word: an agent gives up a sandbox of its own for it.
func (l *launch) env() map[string]string {
	env := map[string]string{}
	if l.spec.Launch != nil {
		maps.Copy(env, l.spec.Launch.Env)
	}
	maps.Copy(env, l.spec.Env)
	delete(env, pluginapi.SandboxEnv)
	if l.spec.Sandbox != nil {
		env[pluginapi.SandboxEnv] = "1"
	}
	return env
}

// run makes the run, whose last recorded state is state.
func (l *launch) run(state string) (*hosted, error) {
	file, err := l.h.edges.journal(l.dir)
	if err != nil {
		return nil, folders.Error("folder of the run", l.dir.Dir, err)
	}
	log, err := l.h.edges.log(l.dir, l.meta)
	if err != nil {
		file.Close()
		return nil, folders.Error("folder of the run", l.dir.Dir, err)
	}
	r := &hosted{
		recorded: &recorded{h: l.h, spec: l.spec, meta: l.meta, agent: l.agent, dir: l.dir},
		log:      log, src: &record.Live{File: file, Conn: l.shim.Conn, Write: PlacesOf(l.h).takeOver(l.dir, l.meta)},
		shim:   shimLink{conn: l.shim.Conn, exited: l.shim.Exited, forget: l.shim.Leave},
		plugin: plugins.Service{Pool: l.h.plugins, Verified: l.plugin, Shared: l.process}, done: make(chan struct{}),
	}
	r.self = &Run{r.recorded, r}
	r.attempts.run, r.attempts.slot, r.attempts.queued = r, l.slot, state == engine.Queued
	r.engine = r.newEngine(state)
	return r, nil
}

// queue begins a run whose turn has not come.
func (l *launch) queue(ctx context.Context) (*Run, error) {
	r, err := l.run(engine.Queued)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		r.src.Close()
		r.log.Close()
		return nil, err
	}
	r.attempts.launch = l
	r.begin(context.WithoutCancel(ctx))
	return r.self, nil
}

// begin hands the plan to the shim and makes the run.
func (l *launch) begin(ctx context.Context, spawn shim.Spawn, record journal.Plan) (*Run, error) {
	r, err := l.run(engine.Starting)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Run, error) {
		r.src.Close()
		r.log.Close()
		return nil, err
	}
	if err := r.src.Append(journal.KindPlan, journal.Encode(record)); err != nil {
		return fail(r.commandError("record the plan", err))
	}
	l.baseline.wait()
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if err := r.shim.conn.Spawn(spawn); isRefusal(err) {
		return fail(pluginapi.Errorf(pluginapi.CodeAborted, "run %s was stopped while it was being started", r.id()))
	} else if err != nil {
		return fail(r.startError(err))
	}
	// From here on there is a run, and what goes wrong is its end, not ours.
	if l.began = time.Now(); l.spec.retry().Attempts() > 1 {
		r.attempts.launch = l
	}
	if l.spec.Prompt != "" || !l.spec.Conversation {
		_ = r.firstPrompt(1, l.spec.Prompt)
	}
	r.begin(context.WithoutCancel(ctx))
	return r.self, nil
}

// firstPrompt tells a process of the agent what it was started for.
func (r *hosted) firstPrompt(attempt int, prompt string) error {
	return input(r, firstInput(attempt, prompt))
}

func firstInput(attempt int, prompt string) journal.Input {
	return journal.Input{Kind: code.InputPrompt, ID: promptID(attempt), Text: prompt, By: "user", First: true}
}

// undo removes what a failed start has made.
func (l *launch) undo() {
	if l.slot != nil {
		l.slot.leave()
	}
	if l.baseline != nil {
		l.baseline.giveUp()
		l.baseline.wait()
	}
	if l.worktree != nil {
		l.worktree.Undo()
	}
	if l.shim != nil {
		_ = l.shim.Kill(shim.Stop{Reason: journal.ReasonKill, By: "host"}) // there may be no agent yet
		_ = l.shim.Release()
		<-l.shim.Gone()
		<-l.shim.Exited
		l.shim.Close()
	}
	if l.away != nil {
		l.away.undo(l.spec.RunID)
	}
	if l.dir != nil {
		_ = os.RemoveAll(l.meta.TempDir)
		_ = l.dir.Remove()
	}
}
