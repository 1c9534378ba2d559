package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/serve"
	"github.com/amux-dev/amux/pluginapi"
)

// adopter takes up runs that have lost their host.
type adopter interface {
	Adopt(ctx context.Context) ([]Run, error)
	Orphans() []string
	Abandoned() []string
}

const (
	serveIdle = time.Minute
	// adoptEvery is how often a server looks for runs that have lost their host.
	adoptEvery = 2 * time.Second
	// endAtOnce is how many runs are brought to their end at a time, of those that have
	// lost host and shim.
	endAtOnce = 4
)

func newServe(s *session) *cobra.Command {
	idle := durationValue{d: serveIdle}
	var onDemand bool
	var maxRuns uint16
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Host detached runs; started by itself where it is needed",
		Long: `Host the runs that amux run --detach starts, and those whose host has died. There
is one for each user, started where it is needed; it leaves when no run has lived
for a minute. However it ends, its runs go on: the next one takes them up, and the
next command that needs one starts it. To end a run: amux stop.

With --max-runs, or max_runs in config.toml, further runs are queued: they begin in
order, and end with their server, as a run does that waits for its next attempt.`,
		Args: exactly(),
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("max-runs") {
				set, err := s.userSettings()
				if err != nil {
					return err
				}
				maxRuns = uint16(set.MaxRuns)
			}
			return s.serve(idle.d, int(maxRuns), onDemand)
		}),
	}
	cmd.Flags().Uint16Var(&maxRuns, "max-runs", 0, "let this `number` of runs go on at a time, and queue further ones; 0: all go on")
	cmd.Flags().Var(&idle, "idle", "leave when no run has lived for this long (default 1m); 0s: never")
	cmd.Flags().BoolVar(&onDemand, "on-demand", false, "")
	_ = cmd.Flags().MarkHidden("on-demand")
	return cmd
}

func (s *session) serve(idle time.Duration, maxRuns int, onDemand bool) error {
	if s.getenv(process.RunEnv) != "" {
		return insideRun()
	}
	if err := host.CheckSystem(); err != nil {
		return err
	}
	dir := s.runtimeDir()
	if err := host.PrepareRuntimeDir(dir); err != nil {
		return err
	}
	sigs, stop := s.app.Signals()
	defer stop()
	server, err := serve.Listen(dir, s.app.Version)
	if errors.Is(err, serve.ErrServed) {
		if onDemand {
			return nil // it does as well
		}
		return pluginapi.Errorf(pluginapi.CodeConfigLock, "another amux serve runs already").
			WithHint("there is one for each user; its socket is in %s", dir)
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "serve: %w", err)
	}
	d := &daemon{s: s, idle: idle, worlds: map[string]*world{}, quiet: time.Now(), replaced: make(chan bool, 1)}
	d.closing, d.close = context.WithCancel(context.Background())
	if maxRuns > 0 {
		d.queue = host.NewQueue(maxRuns)
	}
	d.self, _ = os.Stat(s.app.Executable) // nil: then it is never seen to be replaced
	defer d.leave(server)
	go func() { _ = server.Serve(d.handle) }() // ends with server
	if config, err := s.configDir(); err == nil {
		_ = d.handle(context.Background(), serve.Request{Op: serve.OpAdopt, World: s.world(config)})
	}
	if !onDemand {
		s.errf("serving; what is detached goes on when this ends")
	}
	look := time.NewTicker(min(adoptEvery, max(idle/4, 10*time.Millisecond)))
	if idle <= 0 {
		look.Reset(adoptEvery)
	}
	defer look.Stop()
	for {
		select {
		case sig := <-sigs:
			if isSuspend(sig) {
				suspend()
				continue
			}
			return nil
		case <-d.replaced:
			return nil
		case <-look.C:
			if d.look() {
				return nil
			}
		}
	}
}

// daemon is amux serve at work: a host for each world that somebody has started a
// run in.
type daemon struct {
	s        *session
	idle     time.Duration
	queue    *host.Queue // of all worlds; nil: no limit
	self     os.FileInfo // of the executable, when it was started
	replaced chan bool
	closing  context.Context // ends with the daemon
	close    context.CancelFunc
	ending   sync.WaitGroup // of runs that have lost host and shim

	mu      sync.Mutex
	worlds  map[string]*world
	busy    int       // requests in progress, and runs that live
	quiet   time.Time // since when it is 0
	leaving bool
}

// world is a host and how many of its runs live.
type world struct {
	host  Host
	busy  int
	quiet time.Time
	tried map[string]bool // runs without host and shim: a second try is for a command, which says what is wrong
}

// enter notes that something is done in a world; leave ends it.
func (d *daemon) enter(w serve.World) (_ *world, leave func(), _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving {
		return nil, nil, serve.ErrNone
	}
	env := withoutRun(w.Env)
	key, err := json.Marshal([]any{w.ConfigDir, w.ProjectDir, w.TempDir, w.Plugins, w.AlwaysVerify, w.AutoMTLS, envValue(env, "AMUX_PLUGIN_DIR")})
	if err != nil {
		return nil, nil, err
	}
	at := d.worlds[string(key)]
	if at == nil {
		set, _ := settings.Load(w.ConfigDir, "") // its client has said what is wrong with it
		h, err := d.s.app.NewHost(host.Options{
			ConfigDir: w.ConfigDir, ProjectDir: w.ProjectDir, RuntimeDir: d.s.runtimeDir(), TempDir: w.TempDir,
			BundledDir: d.s.beside("plugins"), BundledHashes: d.s.app.BundledHashes, Plugins: w.Plugins,
			ShimPath: d.s.beside(programName("amux-shim")), Env: env,
			AlwaysVerify: w.AlwaysVerify, AutoMTLS: w.AutoMTLS, Subreaper: true, Version: d.s.app.Version, Logger: d.s.logger(),
			IndexProjects: set.ProjectIndex, Queue: d.queue,
		})
		if err != nil {
			return nil, nil, err
		}
		at = &world{host: h, tried: map[string]bool{}}
		d.worlds[string(key)] = at
	}
	at.busy++
	d.busy++
	return at, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		at.busy--
		d.busy--
		at.quiet, d.quiet = time.Now(), time.Now()
	}, nil
}

// handle answers one request.
func (d *daemon) handle(ctx context.Context, req serve.Request) (reply serve.Reply) {
	fail := func(err error) serve.Reply {
		e := pluginapi.AsError(err)
		reply.Error = &serve.Error{Code: string(e.Code), Op: e.Op, Msg: e.Msg, Hint: e.Hint}
		return reply
	}
	if req.Op == serve.OpRun && d.outdated() {
		reply.Leaving = true
		return reply
	}
	at, leave, err := d.enter(req.World)
	if errors.Is(err, serve.ErrNone) {
		reply.Leaving = true
		return reply
	}
	if err != nil {
		return fail(err)
	}
	defer leave()
	switch {
	case req.Op == serve.OpAdopt:
		err = d.adopt(ctx, at)
		d.end(at)
	case req.Op == serve.OpRun && req.Run != nil:
		reply.RunID, err = d.run(ctx, at, req)
	default:
		err = usage(thisServe+"%s, does not know %q", d.s.app.Version, req.Op)
	}
	if err != nil {
		return fail(err)
	}
	return reply
}

// outdated reports that another build has taken the place of this one: its plugins
// and its keeper are not those that this one knows. It leaves, and the next one
// takes its runs up; but what is queued nobody could, so that this one stays for it.
func (d *daemon) outdated() bool {
	if d.self == nil || d.queue.Waiting() > 0 {
		return false
	}
	now, err := os.Stat(d.s.app.Executable)
	if err == nil && os.SameFile(now, d.self) && now.ModTime().Equal(d.self.ModTime()) {
		return false
	}
	d.mu.Lock()
	d.leaving = true
	d.mu.Unlock()
	select {
	case d.replaced <- true:
	default:
	}
	return true
}

func (d *daemon) run(ctx context.Context, at *world, req serve.Request) (string, error) {
	var spec host.RunSpec
	in := json.NewDecoder(bytes.NewReader(req.Run.Spec))
	in.DisallowUnknownFields() // a wish of a later amux is not passed over in silence
	if err := in.Decode(&spec); err != nil {
		return "", usage(thisServe+"%s, does not understand the run: %v", d.s.app.Version, err)
	}
	spec.Env, spec.Environ, spec.Umask, spec.Detached = req.Run.Env, req.World.Env, req.World.Umask, true
	for i := range spec.MCPServers {
		if i < len(req.Run.MCP) {
			spec.MCPServers[i].Env, spec.MCPServers[i].Headers = req.Run.MCP[i].Env, req.Run.MCP[i].Headers
		}
	}
	run, err := at.host.Start(ctx, spec)
	if err != nil {
		return "", err
	}
	d.watch(at, run, !spec.NoRecord)
	return run.ID(), nil
}

func (d *daemon) adopt(ctx context.Context, at *world) error {
	runs, err := at.host.Adopt(ctx)
	for _, run := range runs {
		d.watch(at, run, true)
	}
	return err
}

// end brings runs to their end that have neither a host nor a shim any more: those that
// ended while no server lived, or before this one could take them up. It does not wait
// for that. The caller is in the world.
func (d *daemon) end(at *world) {
	ids := at.host.Abandoned()
	todo := make(chan string, len(ids))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if !at.tried[id] && !d.leaving {
			at.tried[id] = true
			todo <- id
		}
	}
	close(todo)
	for range min(endAtOnce, len(todo)) {
		at.busy++
		d.busy++
		d.ending.Go(func() {
			for id := range todo {
				if _, err := at.host.RecoverRun(d.closing, id); err != nil && d.closing.Err() == nil {
					d.s.errf("error: %v", err)
				}
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			at.busy--
			d.busy--
			at.quiet, d.quiet = time.Now(), time.Now()
		})
	}
}

// watch counts a run for as long as it lives. The caller is in the world.
func (d *daemon) watch(at *world, run Run, recorded bool) {
	d.mu.Lock()
	at.busy++
	d.busy++
	d.mu.Unlock()
	go func() { // ends with the run, or with the host
		run.Wait()
		if recorded {
			d.s.retain(at.host)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		at.busy--
		d.busy--
		at.quiet, d.quiet = time.Now(), time.Now()
	}()
}

// look takes up what has lost its host, ends hosts that nobody needs, and says
// whether it is time to leave.
func (d *daemon) look() (leave bool) {
	d.mu.Lock()
	var all, over []*world
	for key, at := range d.worlds {
		if at.busy == 0 && time.Since(at.quiet) > max(d.idle, serveIdle) {
			delete(d.worlds, key)
			over = append(over, at)
			continue
		}
		at.busy++
		all = append(all, at)
	}
	d.mu.Unlock()
	for _, at := range over {
		closeHost(at.host)
	}
	for _, at := range all {
		if len(at.host.Orphans()) > 0 {
			if err := d.adopt(context.Background(), at); err != nil {
				d.s.errf("error: %v", err)
			}
		}
		d.end(at)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range all {
		at.busy--
	}
	d.leaving = d.idle > 0 && d.busy == 0 && time.Since(d.quiet) >= d.idle
	return d.leaving
}

// leave ends the hosts. Their runs go on.
func (d *daemon) leave(server *serve.Server) {
	d.mu.Lock()
	d.leaving = true
	all := d.worlds
	d.mu.Unlock()
	server.HangUp()
	d.close()
	d.ending.Wait() // else they would end without their plugins
	if n := d.queue.Waiting(); n > 0 {
		d.s.errf("%s in the queue: canceled, since no other server can begin what it was not told", plural(n, "run"))
	}
	var closing sync.WaitGroup
	for _, at := range all {
		closing.Go(func() { closeHost(at.host) }) // gives up what is being started
	}
	closing.Wait()
	server.Close()
}

func closeHost(h Host) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = h.Close(ctx) // what it says is that time is up
}

// withoutRun is an environment without the mark of a run.
func withoutRun(env []string) []string {
	var rest []string
	for _, variable := range env {
		if len(variable) <= len(process.RunEnv) || variable[:len(process.RunEnv)+1] != process.RunEnv+"=" {
			rest = append(rest, variable)
		}
	}
	return rest
}
