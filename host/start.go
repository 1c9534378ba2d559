package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	defaultGrace = 5 * time.Second
	defaultIdle  = 5 * time.Minute
)

// launch is a run that is being started. Whatever fails, undo leaves nothing.
type launch struct {
	h       *Host
	spec    RunSpec
	agent   *pluginapi.Agent
	plugin  registry.Verified
	program program
	meta    store.Meta
	dir     *store.Run
	shim    *shim.Launched
	process *adapter.Process
	options *pb.RunOptions
	nonce   string
	place   *place    // in the host's queue
	attempt int       // from 1
	began   time.Time // the first one
}

// Start validates the spec, asks the adapter for a plan and starts the agent.
// An error means that nothing was started and nothing is left on disk. Where
// Options.MaxRuns runs go on already, the run is queued: only its spec was looked at,
// and what goes wrong later is its end. When ctx ends before Start returns, the start is given up; after that it has no effect
// on the run, which ends by Stop, Kill or Close.
func (h *Host) Start(ctx context.Context, spec RunSpec) (_ *Run, retErr error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
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
	if err := h.prepare(); err != nil {
		return nil, err
	}
	if l.plugin, err = h.registry.Verify(l.plugin.Plugin); err != nil {
		return nil, err
	}
	l.place = h.opts.Queue.take()
	queued := l.place.waits()
	if err := l.createDir(queued); err != nil {
		return nil, err
	}
	// The plugin's start is the longest part, and the shim needs none of it.
	started := make(chan error, 1)
	patience := adapter.NewPatience(h.limits.call)
	go func() {
		var err error
		since := time.Now()
		l.process, err = h.plugins.get(ctx, l.plugin)
		patience.Spend(time.Since(since))
		started <- err
	}()
	shimErr := l.launchShim()
	if err := <-started; err != nil {
		return nil, err
	}
	if shimErr != nil {
		return nil, shimErr
	}
	if queued {
		return l.queue(ctx)
	}
	plan, err := l.makePlan(ctx, patience)
	if err != nil {
		return nil, err
	}
	spawn, record, err := l.prepareSpawn(plan)
	if err == nil {
		err = l.planned(ctx, record)
	}
	if err != nil {
		return nil, err
	}
	return l.begin(ctx, spawn, record, plan)
}

// maxPlans is how often a plan is asked for when the plugin dies instead.
const maxPlans = 3

// makePlan asks the adapter, and once more if its process died, perhaps of another
// run: a plan is pure.
func (l *launch) makePlan(ctx context.Context, patience *adapter.Patience) (*pluginapi.Plan, error) {
	plan, err := l.plan(ctx, patience)
	for tries := 1; err != nil && tries < maxPlans && !patience.Over() && l.process.Died(err); tries++ {
		since := time.Now()
		l.process, err = l.h.plugins.get(ctx, l.plugin)
		patience.Spend(time.Since(since))
		if err == nil {
			plan, err = l.plan(ctx, patience)
		}
	}
	if err != nil {
		l.h.plugins.hangs(ctx, l.process, err)
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
	l.program, err = l.h.catalog.programs.find(ctx, agent, l.world(), l.spec.Cwd)
	if err != nil {
		return err
	}
	if l.spec.RunID == "" {
		l.spec.RunID = ulid.Make().String()
	}
	l.options = l.spec.options(agent)
	return loadAttachments(l.options.Attachments)
}

func errClosed() error { return pluginapi.Errorf(pluginapi.CodeHostGone, "the host is closed") }

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
		Version: 1, RunID: id, Name: l.spec.Name, Agent: l.spec.Agent, Spec: spec, EnvNames: sortedKeys(l.spec.Env),
		Cwd: l.spec.Cwd, Project: l.h.opts.ProjectDir, Tags: l.spec.Tags, Created: time.Now().UTC(),
		TempDir: filepath.Join(l.h.opts.TempDir, "agent-mux-"+id),
		Plugin:  l.plugin.Plugin.Name, PluginVersion: l.plugin.Plugin.Version, PluginHash: l.plugin.SHA256,
		AmuxVersion: l.h.opts.Version, HostPID: os.Getpid(), HostStart: start, BootID: process.BootID(),
	}
	// Marked before it can be seen: who dies here leaves nothing that looks alive.
	err = l.h.archive.claimName(l.meta.Name, func() error { return errors.Join(dir.MarkActive(), dir.WriteMeta(l.meta)) })
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
	w, err := l.h.edges.writer(l.dir.Path("journal"))
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

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (l *launch) launchShim() error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	l.nonce = hex.EncodeToString(nonce[:])
	err := process.Starting(func() (pid int, err error) {
		l.shim, err = l.h.edges.launch(l.h.opts.ShimPath, l.dir.Dir, shim.Hello{
			Version: shim.Version, Nonce: l.nonce, Host: true, RunID: l.meta.RunID, TempDir: l.meta.TempDir,
			Socket: folders.Socket(l.h.opts.RuntimeDir, l.meta.RunID), Detached: l.spec.Detached,
			HostDir: l.h.plugins.socket, HostPID: l.meta.HostPID, HostStart: l.meta.HostStart,
		})
		if err != nil {
			return 0, err
		}
		return l.shim.Welcome.PID, nil
	})
	if err == nil {
		return nil
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
	options.Env = l.spec.Env
	req := &pb.PlanRequest{
		Agent: l.spec.adapter(), Launch: l.spec.Launch.proto(), Caller: caller(l.agent, l.world(), l.spec.Cwd, l.spec.Env), Options: options,
		RunId: l.meta.RunID, TempDir: l.meta.TempDir, Program: l.program.path, ProgramVersion: l.program.version,
		PluginPath: l.plugin.Path, SessionId: sessionID(l.meta.RunID), Attempt: uint32(l.attempt),
	}
	return l.process.Plan(ctx, req, func(ctx context.Context, wanted *pb.Exec) *pluginapi.ExecResult {
		return command{env: l.world(), cwd: l.spec.Cwd}.exec(ctx, wanted)
	}, patience)
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

// The size of a pseudo-terminal, until somebody who is attached to it changes it.
const (
	terminalCols = 120
	terminalRows = 40
)

// prepareSpawn checks the plan, writes its files and makes the environment.
func (l *launch) prepareSpawn(plan *pluginapi.Plan) (shim.Spawn, journal.Plan, error) {
	bad := func(format string, args ...any) error {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "plugin %s made an invalid plan: %s",
			l.plugin.Plugin.Name, fmt.Sprintf(format, args...)).WithHint("report it to the plugin's author")
	}
	fail := func(err error) (shim.Spawn, journal.Plan, error) { return shim.Spawn{}, journal.Plan{}, err }
	if err := checkPlan(l.plugin.Plugin.Name, plan, l.spec.Launch); err != nil {
		return fail(err)
	}
	if l.spec.PTY && !plan.Pty {
		return fail(pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot run in a pseudo-terminal (--pty) as it was asked to", l.agent.Id).
			WithHint("leave out --pty, or choose another driver"))
	}
	cwd := cmp.Or(plan.Cwd, l.spec.Cwd)
	if plan.Shell {
		if l.spec.Launch == nil || plan.Program == "" || plan.Program != l.spec.Launch.Line {
			return fail(bad("shell is set, and its line is not the user's own"))
		}
		var ok bool
		if plan.Program, plan.Args, ok = shellCommand(plan.Program, plan.Args); !ok {
			return fail(bad("the shell of this system takes no arguments beside its line"))
		}
	}
	program := lookPath(plan.Program, l.world(), cwd)
	if plan.Program == pluginapi.Bridge {
		path := filepath.Join(filepath.Dir(l.h.opts.ShimPath), pluginapi.Bridge)
		if program = executable(path); program == "" {
			return fail(pluginapi.Errorf(pluginapi.CodeSpawn, "agent %s needs %s, which is missing or not executable", l.agent.Id, path).
				WithHint("amux-bridge belongs beside the amux program; see: amux doctor"))
		}
	}
	if plan.Program == "" || program == "" {
		return fail(pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s: no program %q in PATH", l.agent.Id, plan.Program).
			WithHint("%s", installHint(l.agent)))
	}
	if !filepath.IsAbs(cwd) {
		return fail(bad("working directory %q is not absolute", cwd))
	}
	for i, arg := range plan.Args {
		if len(arg) >= maxArg { // the prompt, as a rule
			return fail(invalid("argument %d of agent %s has %d bytes; the system takes %d", i+1, l.agent.Id, len(arg), maxArg).
				WithHint("put the long text into a file"))
		}
	}
	if err := checkBatch(program, plan.Args, l.spec.Prompt, l.spec.SystemPrompt); err != nil {
		return fail(err)
	}
	record := journal.Plan{
		Spawn: l.attempt, Attempt: l.attempt, Program: program, Args: plan.Args, EnvSet: sortedKeys(plan.EnvSet), EnvUnset: plan.EnvUnset,
		Cwd: cwd, Stdin: strings.ToLower(strings.TrimPrefix(plan.Stdin.String(), "STDIN_")), Collect: plan.Collect, PTY: plan.Pty,
		SessionID: plan.SessionId, Version: l.program.version, State: plan.State, Warnings: plan.Warnings,
	}
	for _, f := range plan.Files {
		if err := os.WriteFile(filepath.Join(l.meta.TempDir, f.Name), f.Content, 0o600); err != nil {
			return fail(folders.Error("temp folder of the run", l.meta.TempDir, err))
		}
		record.Files = append(record.Files, f.Name)
	}
	var terminal *shim.Size
	if plan.Pty {
		terminal = &shim.Size{Cols: terminalCols, Rows: terminalRows}
	}
	parent := Parent{}
	if l.spec.Parent != nil {
		parent = *l.spec.Parent
	}
	return shim.Spawn{
		ParentPID: parent.PID, ParentStart: parent.Start,
		Number: l.attempt, Retry: l.attempt < l.spec.Retry.attempts(), Program: program, Args: plan.Args, Env: l.env(plan), Cwd: cwd,
		Stdin:   plan.Stdin == pb.Stdin_STDIN_OPEN || plan.Stdin == pb.Stdin_STDIN_PROMPT,
		Close:   plan.Stdin == pb.Stdin_STDIN_PROMPT,
		Initial: plan.InitialStdin, Collect: plan.Collect, Grace: l.grace(), Terminal: terminal,
		Umask:  l.spec.Umask,
		Limits: []shim.Limit{{Kind: "run", After: l.timeLeft()}, {Kind: "inactivity", After: l.idleLimit(plan)}},
	}, record, nil
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

func (l *launch) grace() time.Duration {
	if l.spec.Grace > 0 {
		return l.spec.Grace
	}
	return defaultGrace
}

// env is the agent's environment: the caller's, then the user's own additions,
// then the adapter's, then ours.
func (l *launch) env(plan *pluginapi.Plan) []string {
	vars := map[string]string{}
	for _, variable := range l.world() {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" {
			vars[name] = value
		}
	}
	for name, value := range l.spec.Env {
		vars[process.EnvName(name)] = value
	}
	for _, name := range plan.EnvUnset {
		delete(vars, process.EnvName(name))
	}
	if plan.Pty {
		// Of the agent's terminal, not of the caller's.
		vars["TERM"] = "xterm-256color"
		delete(vars, "COLUMNS")
		delete(vars, "LINES")
	}
	for name, value := range plan.EnvSet {
		vars[process.EnvName(name)] = value
	}
	for _, name := range tempEnv {
		vars[name] = l.meta.TempDir
	}
	owner := l.meta.RunID
	if outer := vars[process.RunEnv]; outer != "" {
		owner = outer + ":" + owner
	}
	vars[process.RunEnv] = owner
	env := make([]string, 0, len(vars))
	for _, name := range sortedKeys(vars) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// run makes the run, whose last recorded state is state.
func (l *launch) run(state string) (*hosted, error) {
	file, err := l.h.edges.journal(l.dir)
	if err != nil {
		return nil, folders.Error("folder of the run", l.dir.Dir, err)
	}
	log, err := l.h.edges.log(l.dir.Path("events.jsonl"), l.meta)
	if err != nil {
		file.Close()
		return nil, folders.Error("folder of the run", l.dir.Dir, err)
	}
	r := &hosted{
		recorded: &recorded{h: l.h, spec: l.spec, meta: l.meta, agent: l.agent, dir: l.dir},
		log:      log, src: &liveSource{edges: &l.h.edges, file: file, path: l.dir.Path("journal"), conn: l.shim.Conn},
		shim:   shimLink{conn: l.shim.Conn, exited: l.shim.Exited, forget: l.shim.Leave},
		plugin: runPlugin{h: l.h, verified: l.plugin, shared: l.process}, done: make(chan struct{}),
	}
	r.self = &Run{r.recorded, r}
	r.attempts.run, r.attempts.place, r.attempts.queued = r, l.place, state == engine.Queued
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
		r.src.close()
		r.log.Close()
		return nil, err
	}
	r.attempts.launch = l
	r.begin(context.WithoutCancel(ctx))
	return r.self, nil
}

// begin hands the plan to the shim and makes the run.
func (l *launch) begin(ctx context.Context, spawn shim.Spawn, record journal.Plan, plan *pluginapi.Plan) (*Run, error) {
	r, err := l.run(engine.Starting)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Run, error) {
		r.src.close()
		r.log.Close()
		return nil, err
	}
	if err := r.src.append(journal.KindPlan, journal.Encode(record)); err != nil {
		return fail(r.commandError("record the plan", err))
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if err := r.shim.conn.Spawn(spawn); isRefusal(err) {
		return fail(pluginapi.Errorf(pluginapi.CodeAborted, "run %s was stopped while it was being started", r.id()))
	} else if err != nil {
		return fail(r.startError(err))
	}
	// From here on there is a run, and what goes wrong is its end, not ours.
	if l.began = time.Now(); l.spec.Retry.attempts() > 1 {
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

func (l *launch) idleLimit(plan *pluginapi.Plan) time.Duration {
	switch {
	case l.spec.IdleTimeout < 0:
		return 0
	case l.spec.IdleTimeout > 0:
		return l.spec.IdleTimeout
	case plan.InactivitySeconds > 0:
		return time.Duration(plan.InactivitySeconds) * time.Second
	case l.agent.InactivitySeconds > 0:
		return time.Duration(l.agent.InactivitySeconds) * time.Second
	}
	return defaultIdle
}

// undo removes what a failed start has made.
func (l *launch) undo() {
	if l.place != nil {
		l.place.leave()
	}
	if l.shim != nil {
		_ = l.shim.Kill(shim.Stop{Reason: journal.ReasonKill, By: "host"}) // there may be no agent yet
		_ = l.shim.Release()
		<-l.shim.Gone()
		<-l.shim.Exited
		l.shim.Close()
	}
	if l.dir != nil {
		_ = os.RemoveAll(l.meta.TempDir)
		_ = l.dir.Remove()
	}
}
