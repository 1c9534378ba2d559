package app

import (
	"context"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// scoped is a host that shows the runs within a scope only.
type scoped struct {
	Host
	scope Scope
}

// outside is the error for a run that the caller may not see. Whether there is such a run
// is not said.
func outside(ref string) error {
	return pluginapi.Errorf(pluginapi.CodeValidation, "no run %q was started from here", render.String(ref)).
		WithHint("inside a run amux sees the runs below it only; list them: amux ps -a")
}

func (h scoped) Open(ctx context.Context, ref string) (Recorded, error) {
	r, err := h.Host.Open(ctx, ref)
	if err != nil || !h.scope.Sees(r.Info()) {
		return nil, outside(ref) // an ambiguous name would list the others
	}
	return r, nil
}

func (h scoped) check(ctx context.Context, ref string) (string, error) {
	r, err := h.Open(ctx, ref)
	if err != nil {
		return "", err
	}
	return r.ID(), nil
}

func (h scoped) within(runs []host.RunInfo, err error) ([]host.RunInfo, error) {
	return slices.DeleteFunc(runs, func(i host.RunInfo) bool { return !h.scope.Sees(i) }), err
}

func (h scoped) Live(ctx context.Context) ([]host.RunInfo, error) {
	return h.within(h.Host.Live(ctx))
}

func (h scoped) RunsBefore(ctx context.Context, id string, ended bool) iter.Seq2[host.RunInfo, error] {
	return func(yield func(host.RunInfo, error) bool) {
		for info, err := range h.Host.RunsBefore(ctx, id, ended) {
			if (err != nil || h.scope.Sees(info)) && !yield(info, err) {
				return
			}
		}
	}
}

// AnyRun reports whether any run may be seen.
func (h scoped) AnyRun() bool {
	for _, err := range h.RunsBefore(context.Background(), "", false) {
		return err == nil
	}
	return false
}

func (h scoped) ReplayWith(ctx context.Context, ref string, o host.ReplayOptions, w io.Writer) error {
	id, err := h.check(ctx, ref)
	if err != nil {
		return err
	}
	return h.Host.ReplayWith(ctx, id, o, w)
}

func (h scoped) Check(ctx context.Context, ref string) (host.Integrity, error) {
	id, err := h.check(ctx, ref)
	if err != nil {
		return host.Integrity{}, err
	}
	return h.Host.Check(ctx, id)
}

func (h scoped) Cancel(ctx context.Context, ref string, kill bool) (host.Outcome, error) {
	id, err := h.check(ctx, ref)
	if err != nil {
		return host.NotFound, err
	}
	return h.Host.Cancel(ctx, id, kill)
}

func (h scoped) Delete(ctx context.Context, ref string) (host.Outcome, error) {
	id, err := h.check(ctx, ref)
	if err != nil {
		return host.NotFound, err
	}
	return h.Host.Delete(ctx, id)
}

// Spending calls f with the runs that may be seen.
func (h scoped) Spending(ctx context.Context, since time.Time, f func(*host.Spending)) (int, error) {
	runs, err := AllRuns(ctx, h) // the index does not say what a run was started by
	if err != nil {
		return 0, err
	}
	seen := make(map[string]bool, len(runs))
	for _, r := range runs {
		seen[r.ID] = true
	}
	return h.Host.Spending(ctx, since, func(s *host.Spending) {
		if seen[s.Run.ID] {
			f(s)
		}
	})
}

// everyRun is the error for what works on the runs of others as well.
func everyRun(command string) error {
	return pluginapi.Errorf(pluginapi.CodeValidation, "%s works on all runs, and inside a run amux sees the runs below it only", command).
		WithHint("type it outside of runs")
}

func (h scoped) Clean(context.Context, bool) ([]host.Removed, error) {
	return nil, everyRun("amux clean")
}

func (h scoped) Places() Places { return scopedPlaces{h.Host.Places()} }

// scopedPlaces clean nothing: what they have may be of other runs.
type scopedPlaces struct{ Places }

func (scopedPlaces) Clean(context.Context, string) ([]string, error) {
	return nil, everyRun("amux place clean")
}

func (h scoped) Worktrees() Worktrees { return scopedWorktrees{h.Host.Worktrees(), h} }

// scopedWorktrees are the worktrees that only runs within the scope have used.
type scopedWorktrees struct {
	Worktrees
	host scoped
}

func (w scopedWorktrees) List(ctx context.Context) ([]host.Worktree, error) {
	list, err := w.Worktrees.List(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(t host.Worktree) bool {
		return len(t.Runs) == 0 || slices.ContainsFunc(t.Runs, func(id string) bool {
			_, err := w.host.Open(ctx, id)
			return err != nil
		})
	}), nil
}

// check fails unless the worktree may be seen.
func (w scopedWorktrees) check(ctx context.Context, name string) error {
	list, err := w.List(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(t host.Worktree) bool { return t.Name == name }) {
		return pluginapi.Errorf(pluginapi.CodeValidation, "no worktree %q was made from here", render.String(name)).
			WithHint("inside a run amux sees the worktrees of the runs below it only")
	}
	return nil
}

func (w scopedWorktrees) Diff(ctx context.Context, name string) (*host.Diff, error) {
	if err := w.check(ctx, name); err != nil {
		return nil, err
	}
	return w.Worktrees.Diff(ctx, name)
}

func (w scopedWorktrees) Merge(ctx context.Context, name string) (string, []host.ChangedFile, error) {
	if err := w.check(ctx, name); err != nil {
		return "", nil, err
	}
	return w.Worktrees.Merge(ctx, name)
}

func (w scopedWorktrees) Drop(ctx context.Context, name string, discard bool) error {
	if err := w.check(ctx, name); err != nil {
		return err
	}
	return w.Worktrees.Drop(ctx, name, discard)
}

func (w scopedWorktrees) Prune(context.Context, bool) ([]string, error) {
	return nil, everyRun("amux worktree prune")
}
