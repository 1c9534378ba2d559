package app

import (
	"context"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Opener opens the host of a command line when it is first needed.
type Opener struct {
	process *Process
	flags   *Flags
	config  *Config
	project *Project
	server  *Server

	host Host
	// widen, if not nil, is the scope in place of that of the process.
	widen *Scope
}

// Widen gives the host of this command line a scope, in place of that which the process
// has. Call it before the host is opened.
func (o *Opener) Widen(s Scope) { o.widen = &s }

// Host returns the host.
func (o *Opener) Host() (Host, error) { return o.open(o.Options) }

// ForRuns returns the host for commands about runs that exist. It opens with an invalid
// config.toml too: a run can always be listed and stopped.
func (o *Opener) ForRuns() (Host, error) {
	return o.open(func() (host.Options, error) {
		set, err := o.config.Known()
		if err != nil {
			return host.Options{}, err
		}
		return o.OptionsFor(set)
	})
}

// HostFor returns the host that options describe.
func (o *Opener) HostFor(options host.Options) (Host, error) {
	return o.open(func() (host.Options, error) { return options, nil })
}

func (o *Opener) open(options func() (host.Options, error)) (Host, error) {
	if o.host == nil {
		opts, err := options()
		if err != nil {
			return nil, err
		}
		h, err := o.process.NewHost(opts)
		if err != nil {
			return nil, err
		}
		scope := o.process.scope()
		if o.widen != nil {
			scope = *o.widen
		}
		if scope.Limited {
			h = scoped{h, scope}
		}
		o.host = h
	}
	return o.host, nil
}

// Options are all the options of the host, so that nothing is left to its defaults.
// Only the user's settings count: a project's are for runs.
func (o *Opener) Options() (host.Options, error) {
	set, err := o.config.User()
	if err != nil {
		return host.Options{}, err
	}
	dir, err := o.config.Dir()
	if err != nil {
		return host.Options{}, err
	}
	o.project.WarnIgnored(dir)
	return o.OptionsFor(set)
}

// OptionsFor are the options of the host with these settings of the user.
func (o *Opener) OptionsFor(set settings.Settings) (host.Options, error) {
	dir, err := o.config.Dir()
	if err != nil {
		return host.Options{}, err
	}
	overrides, err := o.config.Overrides(set)
	if err != nil {
		return host.Options{}, err
	}
	if o.flags.Verify != "" && o.flags.Verify != "always" {
		return host.Options{}, Usagef("invalid --verify %q: expected always", o.flags.Verify)
	}
	agents, err := o.config.Launches(set)
	if err != nil { // other agents, and runs that exist, do not need it
		o.config.print.Warnf("%s", pluginapi.AsError(err).Msg)
	}
	p := o.process
	return host.Options{
		ConfigDir: dir, ProjectDir: o.project.Dir(dir), RuntimeDir: p.RuntimeDir(),
		BundledDir: p.Beside("plugins"), BundledHashes: p.BundledHashes, Plugins: overrides,
		ShimPath: p.Beside(ProgramName("amux-shim")), Env: p.Env,
		Agents: agents, AlwaysVerify: set.AlwaysVerify || o.flags.Verify == "always", AutoMTLS: set.AutoMTLS, Subreaper: true, Version: p.Version,
		Places: PlacesOf(set), IndexProjects: set.ProjectIndex, Logger: o.config.print.Logger(), OnOrphan: func(ctx context.Context, id string) error { return o.server.FindHost(ctx, id) },
		Keep: KeepOf(set),
	}, nil
}

// closeTime is how long the end of amux waits for its runs to end by themselves.
const closeTime = 10 * time.Second

// Close closes the host, if it was opened.
func (o *Opener) Close() {
	if o.host != nil {
		CloseHost(o.host)
	}
}

// CloseHost closes a host. Its error says only that time was up; the runs are killed
// then.
func CloseHost(h Host) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = h.Close(ctx)
}

// KeepOf is what [keep] says.
func KeepOf(set settings.Settings) host.Keep {
	of := func(most *int) int64 {
		switch {
		case most == nil:
			return 0
		case *most == 0:
			return -1
		}
		return int64(*most)
	}
	return host.Keep{
		Runs: int(of(set.Keep.Runs)), Time: time.Duration(of(set.Keep.Days)) * 24 * time.Hour, Bytes: of(set.Keep.GB) << 30,
	}
}

// PlacesOf are the places of [places.NAME].
func PlacesOf(set settings.Settings) map[string]host.Place {
	places := map[string]host.Place{}
	for name, p := range set.Places {
		places[name] = host.Place{SSH: p.SSH, Docker: p.Docker, Engine: p.Engine, Args: p.Args, Kubernetes: p.Kubernetes, Program: p.Program, Options: p.Options, Folder: p.Folder, Env: p.Env, Alone: p.Alone}
	}
	return places
}
