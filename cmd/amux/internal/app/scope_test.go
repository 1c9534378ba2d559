package app

import (
	"context"
	"errors"
	"testing"

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

func (h *fakeHost) Runs(context.Context) ([]host.RunInfo, error) { return h.runs, nil }
func (h *fakeHost) Live(context.Context) ([]host.RunInfo, error) { return h.runs, nil }

func (h *fakeHost) Cancel(_ context.Context, ref string, _ bool) (host.Outcome, error) {
	h.cancelled = append(h.cancelled, ref)
	return host.Outcome(""), nil
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
	runs, err := in.Runs(ctx)
	if err != nil || len(runs) != 2 || runs[0].ID != "CHILD" || runs[1].ID != "GRAND" {
		t.Errorf("Runs returns %v, %v", runs, err)
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
