package host

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/internal/edge"
	"github.com/amux-dev/amux/host/internal/enclosure"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/pluginapi"
)

// Host runs agents. It is safe for concurrent use. It starts nothing until it is
// asked to, installs no signal handler, and Close ends everything it has started.
type Host struct {
	opts     Options
	log      hclog.Logger
	registry *registry.Registry
	store    *store.Store
	plugins  *plugins.Pool
	limits   limits

	edges   edges
	syncing func(*Run) error // brings a run's journal and events to the disk; nil: as usual

	sweep    sync.Once // clears up after hosts that died
	sweeping sync.WaitGroup

	catalog  catalog
	queries  queries
	archive  archive.Archive
	teller   teller
	recovery recovery
	runs     liveRuns // that this host hosts
	looks    record.Looks

	closing context.Context // ends when Close begins, and what is being started with it
	close   context.CancelFunc

	mu       sync.Mutex
	starting sync.WaitGroup // no start begins once closing has ended
}

// limits are how long a plugin and people may take, and how much a plugin may say.
type limits struct {
	plugins.Limits
	volume int           // bytes of what it makes of one input, besides what a long line gives
	answer time.Duration // for people, to a question of the agent
}

// engine are the limits of an adapter's conversation.
func (l *limits) engine() engine.Limits {
	return engine.Limits{Progress: l.Progress, Volume: l.volume, Stdin: shim.StdinLimit}
}

// SandboxHelper is the program beside the shim that a sandbox needs.
const SandboxHelper = enclosure.Helper

// CheckSandbox returns an error where no sandbox (Permissions.Sandbox) can be made: with CONFIG_ERROR
// the hint says what is missing, CAPABILITY_ERROR is a system that has none. It makes one and
// leaves it. env is that of the caller.
func CheckSandbox(ctx context.Context, env []string) error {
	_, err := enclosure.Find(ctx, process.EnvValue(env, "PATH"))
	return err
}

// CheckSystem returns an error where the processes of a run could not be found, and so
// not be ended: on Linux without /proc. New calls it.
func CheckSystem() error {
	if err := process.Check(); err != nil {
		if why, hint := fault.Limit(err); why != "" {
			return pluginapi.Errorf(pluginapi.CodeConfig, "amux cannot see processes here: %s", why).WithHint("%s", hint)
		}
		return pluginapi.Errorf(pluginapi.CodeConfig, "amux cannot see processes here: %w", err).
			WithHint("mount it (mount -t proc proc /proc), or run amux outside this container or chroot")
	}
	return nil
}

// New returns a host. It writes no file. It fails with CONFIG_ERROR if amux is neither
// beside the program nor on PATH, unless the options say where it is.
func New(opts Options) (*Host, error) {
	if err := CheckSystem(); err != nil {
		return nil, err
	}
	if opts.MaxRuns < 0 {
		return nil, invalid("%d runs at a time are less than none", opts.MaxRuns)
	}
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	opts.Env = process.Environ(opts.Env)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.TempDir == "" {
		opts.TempDir = os.TempDir()
	}
	if opts.ConfigDir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "find the home directory: %w", err).
				WithHint("set AGENT_MUX_CONFIG_DIR")
		}
		opts.ConfigDir = filepath.Join(home, ".agent-mux")
	}
	if opts.RuntimeDir == "" {
		opts.RuntimeDir = folders.DefaultRuntime(process.EnvValue(opts.Env, "XDG_RUNTIME_DIR"))
	}
	if err := findInstallation(&opts); err != nil {
		return nil, err
	}
	for _, dir := range []*string{&opts.ConfigDir, &opts.ProjectDir, &opts.RuntimeDir, &opts.TempDir, &opts.BundledDir, &opts.ShimPath} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", *dir, err)
		}
		*dir = abs
	}
	if opts.Queue == nil && opts.MaxRuns > 0 {
		opts.Queue = NewQueue(opts.MaxRuns)
	}
	if opts.Subreaper {
		if err := adoptOrphans(); err != nil {
			return nil, err
		}
	}
	h := &Host{
		opts: opts, log: opts.Logger, store: store.New(opts.ConfigDir),
		limits: limits{
			Limits: plugins.Limits{
				Start: 10 * time.Second, Call: 10 * time.Second, Progress: 4 * time.Second, Stall: 10 * time.Second, Memory: plugins.MaxMemory,
			},
			volume: pluginapi.MaxLine, answer: answerTime,
		},
		registry: registry.New(registry.Options{
			ConfigDir: opts.ConfigDir, PluginDir: process.EnvValue(opts.Env, "AMUX_PLUGIN_DIR"), ProjectDir: opts.ProjectDir,
			BundledDir: opts.BundledDir, BundledHashes: opts.BundledHashes, Overrides: opts.Plugins,
			AlwaysVerify: opts.AlwaysVerify, Version: opts.Version,
		}),
	}
	h.catalog = catalog{&h.opts, h.registry, program.Versions(filepath.Join(opts.ConfigDir, "cache", "programs.json"))}
	h.archive = archive.Archive{
		Store: h.store, Registry: h.registry, Log: h.log, ConfigDir: opts.ConfigDir, RuntimeDir: opts.RuntimeDir, TempDir: opts.TempDir,
		IndexProjects: opts.IndexProjects, Subreaper: opts.Subreaper, Keep: archive.Keep(opts.Keep),
	}
	h.queries.host, h.teller.host, h.recovery.host = h, h, h
	h.edges = machine(&h.archive)
	h.plugins = plugins.New(plugins.Options{
		Honest: h.registry.RememberHonest,
		Start:  func(ctx context.Context, o adapter.Options) (*adapter.Process, error) { return h.edges.plugin(ctx, o) },
		Pinned: h.registry.Pinned, Env: opts.Env, AutoMTLS: opts.AutoMTLS, Subreaper: opts.Subreaper, Logger: opts.Logger, Limits: &h.limits.Limits,
		Folder: plugins.NewFolder(opts.RuntimeDir),
	})
	h.closing, h.close = context.WithCancel(context.Background())
	return h, nil
}

// NewOn is New for package hosttest, whose agents, plugins and shims are in its own process.
func NewOn(opts Options, machine edge.Edges) (*Host, error) {
	h, err := New(opts)
	if err != nil {
		return nil, err
	}
	h.edges.launch, h.edges.dial, h.edges.plugin = machine.Launch, machine.Dial, machine.Plugin
	h.edges.relay = nil
	h.edges.sweep = func(meta store.Meta) { machine.Sweep(meta.RunID) }
	return h, nil
}

func adoptOrphans() error {
	if err := process.AdoptOrphans(); err != nil {
		return pluginapi.Errorf(pluginapi.CodeInternal, "become a subreaper: %w", err)
	}
	return nil
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// prepare makes the folders that a run needs.
func prepare(h *Host) error {
	if err := spawn.CheckLimits(); err != nil {
		return err
	}
	if err := folders.Config(h.opts.ConfigDir); err != nil {
		return err
	}
	for _, dir := range []string{h.opts.RuntimeDir, h.plugins.Folder} {
		if err := folders.Runtime(dir); err != nil {
			return err
		}
	}
	h.sweep.Do(h.recovery.sweep)
	return nil
}

// PrepareRuntimeDir makes a folder for sockets. It refuses one that is not the user's
// alone, or that lies where others could replace it.
func PrepareRuntimeDir(dir string) error { return folders.Runtime(dir) }

// enter begins something that Close gives up and waits for. The context it gives
// ends with ctx or with Close; leave says why err came about.
func (h *Host) enter(ctx context.Context) (_ context.Context, leave func(err error) error, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing.Err() != nil {
		return nil, nil, plugins.ErrClosed()
	}
	h.starting.Add(1)
	inner, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.closing, cancel)
	return inner, func(err error) error {
		given := ctx.Err()
		if inner.Err() != nil && given == nil {
			given = plugins.ErrClosed()
		}
		stop()
		cancel()
		h.starting.Done()
		if err != nil && given != nil {
			return given
		}
		return err
	}, nil
}

// Close stops every run that this host started, waits for them, and ends all
// plugins. When ctx ends, the stops become kills. Detached runs go on; what waits
// for one of them here is told HOST_GONE. Those that have no process now, in the queue
// or before their next attempt, end with HOST_GONE: nobody else can start it.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.close()
	h.mu.Unlock()
	h.starting.Wait()
	var wg sync.WaitGroup
	for _, r := range h.runs.all() {
		wg.Go(func() {
			if r.spec.Detached {
				r.attempts.endUnstarted()
				r.letGo()
				<-r.done
				return
			}
			_ = r.self.Stop(ctx) // a run that has just ended cannot be stopped
			select {
			case <-r.done:
			case <-ctx.Done():
				_ = r.self.Kill(context.WithoutCancel(ctx))
				<-r.done
			}
		})
	}
	wg.Wait()
	h.sweeping.Wait()
	h.plugins.Close()
	_ = os.RemoveAll(h.plugins.Folder)
	return ctx.Err()
}

// edges are how a host reaches the disk, the shims, the agents' processes and the plugins:
// those of this machine, or in a simulation others.
type edges struct {
	open   rawio.Opener // journals and event logs
	launch func(path, dir string, hello shim.Hello) (*shim.Launched, error)
	// relay starts what stands here for the shim of a run at another place; nil: there are none.
	relay  func(path, dir string, env []string, hello shim.Hello) (*shim.Launched, error)
	dial   shim.Dialer
	sweep  func(store.Meta) // kills what a run has left
	plugin func(context.Context, adapter.Options) (*adapter.Process, error)
	random func() float64 // from 0 to 1
}

// machine are the edges to this machine.
func machine(a *archive.Archive) edges {
	return edges{open: rawio.OpenFile, launch: shim.Launch, relay: shim.LaunchIn, dial: shim.Connect, sweep: a.Sweep, plugin: adapter.Connect, random: rand.Float64}
}

// journal opens a journal to read it; some systems sync only what is open for
// writing.
func (e *edges) journal(dir *store.Run) (rawio.File, error) {
	return e.open(dir.Path("journal"), os.O_RDWR, 0)
}

// writer opens a run's journal to go on with it.
func (e *edges) writer(dir *store.Run) func() (*journal.Writer, error) {
	return func() (*journal.Writer, error) {
		file, err := e.open(dir.Path("journal"), journal.OpenFlags, 0o600)
		if err != nil {
			return nil, err
		}
		return journal.NewWriter(file, time.Now)
	}
}

// log opens an event log to go on with it.
func (e *edges) log(dir *store.Run, meta store.Meta) (*eventlog.Log, error) {
	return eventlog.OpenOn(e.open, dir.Path("events.jsonl"), meta.RunID, meta.Agent, true)
}

// Supervision is for the packages that start a plugin for a moment. With adopt this
// process becomes the parent of what loses its parent, so that also a daemon is found
// that left its session and dropped its environment; every child that the program
// starts otherwise must then be started by process.Starting, or not be there meanwhile.
func Supervision(adopt bool) (install.Supervision, error) {
	if adopt {
		if err := adoptOrphans(); err != nil {
			return install.Supervision{}, err
		}
	}
	return install.Supervision{
		Mark: process.RunEnv, Starting: process.Starting, Memory: process.ResidentTree,
		Sweep: func(mark string) {
			if adopt {
				mark = "" // all that is left is here: no need to look at the whole machine
			}
			process.Sweep(mark, adopt)
		},
		SweepMarked: func(mark string) { process.Sweep(mark, false) },
	}, nil
}
