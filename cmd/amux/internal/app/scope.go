package app

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/pluginapi"
)

// Scope says which runs a command may see and control. The zero value is all runs.
type Scope struct {
	Limited bool
	Below   []string // runs below these, by id
	Runs    []string // these runs, by id
	Tag     string   // runs with this tag; empty: none
}

// Sees reports whether a run is within the scope.
func (s Scope) Sees(info host.RunInfo) bool {
	return !s.Limited || slices.ContainsFunc(s.Below, info.Below) || slices.Contains(s.Runs, info.ID) ||
		s.Tag != "" && slices.Contains(info.Tags, s.Tag)
}

// Inside returns the id of the run that the process belongs to; empty outside runs.
func (p *Process) Inside() string {
	list := p.Getenv(process.RunEnv)
	return list[strings.LastIndexByte(list, ':')+1:]
}

// scope is that of a command: inside a run, the runs below it.
func (p *Process) scope() Scope {
	if id := p.Inside(); id != "" {
		return Scope{Limited: true, Below: []string{id}}
	}
	return Scope{}
}

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

func (h scoped) Runs(ctx context.Context) ([]host.RunInfo, error) {
	return h.within(h.Host.Runs(ctx))
}

func (h scoped) Live(ctx context.Context) ([]host.RunInfo, error) {
	return h.within(h.Host.Live(ctx))
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
