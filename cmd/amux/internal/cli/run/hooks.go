package run

import (
	"context"
	"os"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/notify"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
)

// watch runs the hooks of the settings for a run, and notifies, unless somebody looks: who
// does hears only the bell, when a question is asked. The channel is closed when all is
// done.
func (r *request) watch(ctx context.Context, run notify.Run, looks bool) <-chan struct{} {
	done := make(chan struct{})
	w := notify.Watcher{Settings: r.settings.Notify, Hooks: r.settings.Hooks, Env: r.Process.Env, Warn: r.Print.Warnf}
	switch {
	case looks:
		w.Settings = settings.Notify{}
	case r.Process.IO.ErrTTY:
		w.Terminal = r.Process.IO.Err
	}
	if !w.Needed() {
		close(done)
		return done
	}
	go func() { // ends with the run and its hooks, or with ctx
		defer close(done)
		w.Watch(ctx, run, 1)
	}()
	return done
}

// export has a run exported that is in a trace.
func (r *request) export(run app.Run) {
	dir, err := r.Config.Dir()
	if err != nil || r.spec.Trace == nil {
		return
	}
	r.Export.Follow(r.settings.Telemetry, r.Process.Env, dir, run.Info())
}

// awaitHooks waits for the hooks of a run that has ended. A signal gives them up.
func awaitHooks(done <-chan struct{}, giveUp func(), sigs <-chan os.Signal) {
	for {
		select {
		case <-done:
			return
		case sig := <-sigs:
			if app.IsSuspend(sig) {
				app.Suspend()
				continue
			}
			giveUp()
		}
	}
}
