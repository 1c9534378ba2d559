package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/compare"
	"github.com/amux-dev/amux/cmd/amux/internal/notify"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/telemetry"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// checkEach refuses what one prompt for several agents cannot be combined with.
func (o *Options) checkEach(args []string) error {
	for _, wrong := range []struct {
		given      bool
		flag, hint string
	}{
		{o.JSON, "json", "afterwards: amux compare --json RUN…, amux logs --json RUN"},
		{o.Input != "", "input", "start a run for each agent"},
		{o.Interactive, "interactive", "start a run for each agent"},
		{o.RunID != "", "run-id", "leave it out"},
		{o.Resume != "" || o.Continue || o.Fork, "resume, --continue or --fork", "a session belongs to one agent"},
		{o.NoRecord, "no-record", "the results are compared by their records"},
	} {
		if wrong.given {
			return app.Usagef("--each cannot be combined with --%s", wrong.flag).WithHint("%s", wrong.hint)
		}
	}
	for _, name := range o.Each {
		if !agentRule.MatchString(name) {
			return app.Usagef("invalid --each %q: expected names of agents, separated by commas", strings.Join(o.Each, ",")).WithHint("for example: --each claude,codex; all agents: amux agents list")
		}
	}
	if len(args) > 1 {
		return app.Usagef("got %d arguments; --each names the agents, so the prompt is the only one", len(args)).WithHint(`amux run --each %s "%s …"`, strings.Join(o.Each, ","), args[0])
	}
	return nil
}

// each starts one prompt with several agents, each in a worktree of its own.
func (o *Options) each(args []string) error {
	if err := o.checkEach(args); err != nil {
		return err
	}
	set, err := o.Config.Settings()
	if err != nil {
		return err
	}
	h, err := o.Opener.Host()
	if err != nil {
		return err
	}
	f := &fanOut{host: h, options: o}
	seen := map[string]int{}
	for i, agent := range o.Each {
		if _, err := h.Agent(context.Background(), agent); err != nil {
			return err
		}
		r := &request{Options: o, settings: set}
		if r.spec, err = o.spec(); err != nil {
			return err
		}
		if i > 0 {
			r.prompt = &f.all[0].spec.Prompt
		}
		if err := r.prepare(context.Background(), h, append([]string{agent}, args...)); err != nil {
			return err
		}
		if !r.agent.Installed {
			return pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s is not installed, and nothing was started", agent).WithHint("see: amux agents info %s", agent)
		}
		label := agent
		if seen[agent]++; seen[agent] > 1 {
			label = fmt.Sprintf("%s-%d", agent, seen[agent])
		}
		r.spec.Worktree = &host.WorktreeSpec{}
		if o.Worktree.name != "" {
			r.spec.Worktree.Name = o.Worktree.name + "-" + label
		}
		if o.Name != "" {
			r.spec.Name = o.Name + "-" + label
		}
		if i > 0 {
			r.warnings = nil // the first has said so
		}
		f.all = append(f.all, r)
	}
	if o.Detach {
		for _, r := range f.all {
			if err := r.detach(h); err != nil {
				return err
			}
		}
		return nil
	}
	return f.foreground()
}

// fanOut are the runs of one prompt.
type fanOut struct {
	host    app.Host
	options *Options
	all     []*request
	runs    []app.Run
	sigs    <-chan os.Signal
	caught  os.Signal
	asked   int // how often somebody has asked for the end

	watching context.Context // of the hooks, which giveUp ends
	giveUp   func()
	notified []<-chan struct{} // of each run
}

// oneEnd is how one of the runs has ended.
type oneEnd struct {
	index  int
	result host.Result
}

// foreground starts the runs, waits for all, and compares them.
func (f *fanOut) foreground() error {
	sigs, stop := f.options.Process.Signals()
	defer stop()
	f.sigs = sigs
	f.watching, f.giveUp = context.WithCancel(context.Background())
	defer f.giveUp()
	defer f.options.Export.Close()
	if err := f.start(); err != nil {
		f.stop()
		f.wait()
		if f.caught != nil {
			return app.ExitError(app.SignalCode(f.caught))
		}
		return err
	}
	results := f.wait()
	f.options.Runs.Retain(f.host, app.RetainTime)
	f.compare()
	if f.caught != nil {
		return app.ExitError(app.SignalCode(f.caught))
	}
	for _, result := range results {
		if result.Err != nil {
			return app.Failed(result)
		}
	}
	return nil
}

// start starts one run after the other. A signal gives that up.
func (f *fanOut) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i, r := range f.all {
		r.spec.Trace = telemetry.Trace(r.settings.Telemetry, r.Process.Env, r.spec)
		r.spec.OnPlan, r.spec.Prepare = r.onPlan(), notify.Before(r.settings.Hooks, r.Process.Env)
		var run app.Run
		done := make(chan error, 1)
		go func() { // ends with the start
			var err error
			run, err = f.host.Start(ctx, r.spec)
			done <- err
		}()
		for starting := true; starting; {
			select {
			case err := <-done:
				if err != nil {
					return err
				}
				starting = false
			case sig := <-f.sigs:
				if app.IsSuspend(sig) {
					app.Suspend()
					continue
				}
				f.caught = sig
				cancel()
			}
		}
		f.runs = append(f.runs, run)
		r.export(run)
		f.notified = append(f.notified, r.watch(f.watching, run, r.Process.Attended()))
		if f.caught != nil {
			return errors.New("interrupted")
		}
		if i == 0 {
			r.printWarnings()
			if r.denyWarning != "" {
				r.Print.Warnf("%s", r.denyWarning)
			}
		}
		if !r.Quiet {
			r.Print.Notef("%s: run %s in %s", r.spec.Agent, render.ShortID(run.ID()), run.Info().Cwd)
		}
	}
	return nil
}

// wait waits for all runs and their hooks, says how each has ended, and does what signals ask.
func (f *fanOut) wait() []host.Result {
	ends := make(chan oneEnd, len(f.runs))
	for i, run := range f.runs {
		go func() {
			result, _ := run.Wait(context.Background())
			ends <- oneEnd{i, result}
		}()
	}
	results := make([]host.Result, len(f.runs))
	for left := len(f.runs); left > 0; {
		select {
		case e := <-ends:
			left--
			results[e.index] = e.result
			f.report(e)
		case sig := <-f.sigs:
			if app.IsSuspend(sig) {
				f.everywhere(app.Run.Pause)
				app.Suspend() // until somebody says fg
				f.everywhere(app.Run.Resume)
				continue
			}
			f.caught = sig
			f.stop()
		}
	}
	for _, notified := range f.notified {
		awaitHooks(notified, f.giveUp, f.sigs)
	}
	return results
}

// stop stops all runs; asked for again, it kills them.
func (f *fanOut) stop() {
	if f.asked++; f.asked > 1 {
		f.everywhere(app.Run.Kill)
		return
	}
	f.everywhere(app.Run.Stop)
}

// everywhere does something to all runs. It fails for those that have ended.
func (f *fanOut) everywhere(do func(app.Run, context.Context) error) {
	for _, run := range f.runs {
		_ = do(run, context.Background())
	}
}

func (f *fanOut) report(e oneEnd) {
	r, id := f.all[e.index], f.runs[e.index].ID()
	if e.result.Err != nil && f.caught == nil {
		r.Print.Error(e.result.Err, id, r.spec.Agent)
	}
	if !r.Quiet {
		r.Print.Notef("%s: run %s %s", r.spec.Agent, render.ShortID(id), strings.ReplaceAll(e.result.State, "_", " "))
	}
}

// compare shows the results, and what can be done with them.
func (f *fanOut) compare() {
	var rows []compare.Row
	var ids []string
	for _, run := range f.runs {
		if recorded, err := f.host.Open(context.Background(), run.ID()); err == nil {
			rows = append(rows, compare.Of(recorded))
			ids = append(ids, render.ShortID(run.ID()))
		}
	}
	if len(rows) == 0 {
		return // somebody has removed them
	}
	f.options.Print.Table(compare.Table(rows))
	if !f.options.Quiet {
		best := rows[max(0, slices.IndexFunc(rows, func(r compare.Row) bool { return r.Changes != nil && r.Changes.Files > 0 }))].Worktree
		f.options.Print.Notef("amux compare %s --check COMMAND · amux worktree diff %s · amux worktree merge %[2]s", strings.Join(ids, " "), best)
	}
}
