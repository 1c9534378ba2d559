package app

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
)

// fakeHost has runs by id.
type fakeHost struct {
	Host
	runs      []host.RunInfo
	cancelled []string
}

type fakeRun struct {
	Recorded
	info host.RunInfo
}

func (r fakeRun) ID() string         { return r.info.ID }
func (r fakeRun) Info() host.RunInfo { return r.info }

func (h *fakeHost) Open(_ context.Context, ref string) (Recorded, error) {
	for _, r := range h.runs {
		if r.ID == ref || r.Name == ref {
			return fakeRun{info: r}, nil
		}
	}
	return nil, errors.New("ambiguous: secret-1, secret-2")
}

func (h *fakeHost) RunsBefore(context.Context, string, bool) iter.Seq2[host.RunInfo, error] {
	return func(yield func(host.RunInfo, error) bool) {
		for _, r := range h.runs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (h *fakeHost) Live(context.Context) ([]host.RunInfo, error) { return h.runs, nil }

func (h *fakeHost) Cancel(_ context.Context, ref string, _ bool) (host.Outcome, error) {
	h.cancelled = append(h.cancelled, ref)
	return host.Outcome(""), nil
}

func (h *fakeHost) Spending(_ context.Context, _ time.Time, f func(*host.Spending)) (int, error) {
	for _, r := range h.runs {
		f(&host.Spending{Run: host.RunInfo{ID: r.ID}})
	}
	return 0, nil
}

func (h *fakeHost) Worktrees() Worktrees { return fakeWorktrees{} }

// fakeWorktrees are one of a run below, one that it shares with another, one that none has used.
type fakeWorktrees struct{ Worktrees }

func (fakeWorktrees) List(context.Context) ([]host.Worktree, error) {
	return []host.Worktree{
		{Name: "below", Runs: []string{"CHILD", "GRAND"}},
		{Name: "shared", Runs: []string{"OTHER", "CHILD"}},
		{Name: "none"},
	}, nil
}

func (fakeWorktrees) Drop(context.Context, string, bool) error { return nil }

func (fakeWorktrees) Diff(context.Context, string) (*host.Diff, error) { return nil, nil }

func (fakeWorktrees) Merge(context.Context, string) (string, []host.ChangedFile, error) {
	return "", nil, nil
}

func run(id, name string, startedBy ...string) host.RunInfo {
	return host.RunInfo{ID: id, Name: name, Spec: host.RunSpec{Workspace: host.Workspace{StartedBy: startedBy}}}
}

func TestScopeOfARunIsWhatItStarted(t *testing.T) {
	t.Parallel()
	all := []host.RunInfo{run("ME", "me", "TOP"), run("CHILD", "child", "TOP", "ME"), run("GRAND", "grand", "ME", "CHILD"), run("OTHER", "other"), run("SISTER", "sister", "TOP")}
	h := &fakeHost{runs: all}
	p := &Process{Env: []string{process.RunEnv + "=TOP:ME"}, NewHost: func(host.Options) (Host, error) { return h, nil }}
	o := &Opener{process: p}
	in, err := o.HostFor(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for ref, sees := range map[string]bool{
		"CHILD": true, "child": true, "GRAND": true, "ME": false, "me": false, "OTHER": false, "other": false, "SISTER": false, "X": false,
	} {
		_, err := in.Open(ctx, ref)
		_, err2 := in.Cancel(ctx, ref, true)
		if (err == nil) != sees || (err2 == nil) != sees {
			t.Errorf("%s: Open returns %v, Cancel %v", ref, err, err2)
		}
		if err != nil && err.Error() != outside(ref).Error() {
			t.Errorf("%s: the error tells more than that it is not below: %v", ref, err)
		}
	}
	for _, ref := range h.cancelled {
		if ref != "CHILD" && ref != "GRAND" {
			t.Errorf("%s was canceled", ref)
		}
	}
	h.runs = append([]host.RunInfo(nil), all...)
	runs, err := AllRuns(ctx, in)
	if err != nil || len(runs) != 2 || runs[0].ID != "CHILD" || runs[1].ID != "GRAND" {
		t.Errorf("Runs returns %v, %v", runs, err)
	}
	var ended []string
	for r, err := range in.RunsBefore(ctx, "", true) {
		if err != nil {
			t.Fatal(err)
		}
		ended = append(ended, r.ID)
	}
	if !slices.Equal(ended, []string{"CHILD", "GRAND"}) {
		t.Errorf("RunsBefore returns %v", ended)
	}
}

func TestScopeOfMoneyAndWorktrees(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := &fakeHost{runs: []host.RunInfo{run("ME", ""), run("CHILD", "", "ME"), run("GRAND", "", "ME", "CHILD"), run("OTHER", "")}}
	in := scoped{h, Scope{Limited: true, Below: []string{"ME"}}}
	var paid []string
	if _, err := in.Spending(ctx, time.Time{}, func(s *host.Spending) { paid = append(paid, s.Run.ID) }); err != nil || !slices.Equal(paid, []string{"CHILD", "GRAND"}) {
		t.Errorf("Spending names %v, %v", paid, err)
	}
	if _, err := in.Clean(ctx, false); err == nil {
		t.Error("Clean removes the runs of others")
	}
	trees := in.Worktrees()
	list, err := trees.List(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "below" {
		t.Errorf("List returns %v, %v", list, err)
	}
	if _, err := trees.Prune(ctx, false); err == nil {
		t.Error("Prune drops the worktrees of others")
	}
	for _, name := range []string{"below", "shared", "none", "other"} {
		_, diff := trees.Diff(ctx, name)
		_, _, merge := trees.Merge(ctx, name)
		drop := trees.Drop(ctx, name, true)
		if below := name == "below"; (diff == nil) != below || (merge == nil) != below || (drop == nil) != below {
			t.Errorf("%s: Diff returns %v, Merge %v, Drop %v", name, diff, merge, drop)
		}
	}
}

func TestScopeGranted(t *testing.T) {
	t.Parallel()
	tagged := run("TAGGED", "")
	tagged.Tags = []string{"mcp"}
	s := Scope{Limited: true, Runs: []string{"A"}, Below: []string{"A"}, Tag: "mcp"}
	for _, c := range []struct {
		info host.RunInfo
		sees bool
	}{{run("A", ""), true}, {run("B", "", "A"), true}, {run("C", ""), false}, {tagged, true}} {
		if s.Sees(c.info) != c.sees {
			t.Errorf("%s: sees is %v", c.info.ID, !c.sees)
		}
	}
	if !(Scope{}).Sees(run("C", "")) {
		t.Error("outside runs, a run is not seen")
	}
}
