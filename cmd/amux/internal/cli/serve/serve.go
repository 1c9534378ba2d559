// Package serve has amux serve, which hosts the user's detached runs.
package serve

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/telemetry"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/serve"
	"github.com/amux-dev/amux/internal/sys/startup"
	"github.com/amux-dev/amux/pluginapi"
)

// Options are what amux serve needs.
type Options struct {
	Process *app.Process
	Print   *app.Printer
	Config  *app.Config
	Server  *app.Server
	Runs    *app.Runs

	Idle     app.DurationFlag
	MaxRuns  uint16
	OnDemand bool
}

const (
	// serveIdle is how long a server stays without a run.
	serveIdle = time.Minute
	// adoptEvery is how often a server looks for runs without a host.
	adoptEvery = 2 * time.Second
	// endAtOnce is how many runs without host and shim are ended at a time.
	endAtOnce = 4
)

// HTTP are what amux serve --http needs.
type HTTP struct {
	Address string // empty: the user's own socket
}

// Face serves HTTP until a signal ends it.
type Face func(a *app.App, o *HTTP) error

// ownSocket is --http without an address.
const ownSocket = "socket"

// NewCmd makes amux serve. Without a face it hands --http over to amux-api.
func NewCmd(a *app.App, face Face) *cobra.Command {
	var http string
	o := &Options{Process: a.Process, Print: a.Print, Config: a.Config, Server: a.Server, Runs: a.Runs, Idle: app.DurationFlag{D: serveIdle}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Host detached runs",
		Long: `Host the runs that amux run --detach starts, and the runs whose host has died. There is
one server for each user. amux starts it when it is needed, and it leaves after a minute
without a run. Its runs go on however it ends: the next command that needs a server
starts one, which adopts them. To end a run, use amux stop.

With --max-runs, or max_runs in config.toml, more runs are queued. They start in order,
and end with their server, like a run that waits for its next attempt.

With --http it serves the HTTP API instead, beside that server, which is started when a
run needs it: on a socket of your own, or on a port of this machine, for whoever has the
token in http.token of the configuration folder. A port has a page for browsers, too: the
link that is printed signs one in, once. [http] in config.toml says what may be started.`,
		Example: "  amux serve\n  amux serve --max-runs 4 --idle 0s\n  amux serve --http\n  amux serve --http=127.0.0.1:8080",
		Args:    app.ExactArgs(),
		RunE: app.Command(func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("http") {
				if cmd.Flags().Changed("max-runs") || cmd.Flags().Changed("idle") {
					return app.Usagef("--http and --max-runs or --idle cannot be combined").WithHint("give those to an amux serve of its own, or set max_runs in config.toml")
				}
				if face == nil {
					return a.HandOver()
				}
				if http == ownSocket {
					http = ""
				}
				return face(a, &HTTP{Address: http})
			}
			if !cmd.Flags().Changed("max-runs") {
				set, err := o.Config.User()
				if err != nil {
					return err
				}
				o.MaxRuns = uint16(set.MaxRuns)
			}
			return listen(o)
		}),
	}
	cmd.Flags().Uint16Var(&o.MaxRuns, "max-runs", 0, "run at most this `NUMBER` of runs at a time, and queue the others; 0: no limit")
	cmd.Flags().Var(&o.Idle, "idle", "leave after this time without a run (default 1m); 0s: never")
	cmd.Flags().StringVar(&http, "http", "", "serve HTTP on a socket of your own, or with --http=`ADDRESS` on a port of this machine")
	cmd.Flags().Lookup("http").NoOptDefVal = ownSocket
	cmd.Flags().BoolVar(&o.OnDemand, "on-demand", false, "")
	_ = cmd.Flags().MarkHidden("on-demand")
	return cmd
}

func listen(o *Options) error {
	s, idle := o.Process, o.Idle.D
	if s.Getenv(process.RunEnv) != "" {
		return app.InsideRun()
	}
	if err := host.CheckSystem(); err != nil {
		return err
	}
	dir := s.RuntimeDir()
	if err := host.PrepareRuntimeDir(dir); err != nil {
		return err
	}
	sigs, stop := s.Signals()
	defer stop()
	server, err := serve.Listen(dir, s.Version)
	if errors.Is(err, serve.ErrServed) {
		if o.OnDemand {
			return nil // that one serves as well
		}
		return pluginapi.Errorf(pluginapi.CodeConfigLock, "amux serve is already running").
			WithHint("there is one for each user; its socket is in %s", dir)
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "serve: %w", err)
	}
	startup.GiveBackSoon()
	d := &daemon{process: o.Process, print: o.Print, runs: o.Runs, idle: idle, worlds: map[string]*world{}, quiet: time.Now(), replaced: make(chan bool, 1)}
	d.export = &telemetry.Exporters{Program: o.Process.Beside(app.ProgramName("amux-api")), Debugf: o.Print.Debugf}
	d.closing, d.close = context.WithCancel(context.Background())
	d.telling, d.hush = context.WithCancel(context.Background())
	if o.MaxRuns > 0 {
		d.queue = host.NewQueue(int(o.MaxRuns))
	}
	d.self, _ = os.Stat(s.Executable) // nil: a replacement is not noticed
	defer d.leave(server)
	go func() { _ = server.Serve(d.handle) }() // ends with server
	if config, err := o.Config.Dir(); err == nil {
		_ = d.handle(context.Background(), serve.Request{Op: serve.OpAdopt, World: o.Server.World(config)})
	}
	if !o.OnDemand {
		o.Print.Notef("serving; detached runs go on when this ends")
	}
	look := time.NewTicker(min(adoptEvery, max(idle/4, 10*time.Millisecond)))
	if idle <= 0 {
		look.Reset(adoptEvery)
	}
	defer look.Stop()
	for {
		select {
		case sig := <-sigs:
			if app.IsSuspend(sig) {
				app.Suspend()
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
