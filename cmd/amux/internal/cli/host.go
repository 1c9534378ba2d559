package cli

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/amux-dev/amux/host"
)

// Run is what the run command asks of a host.Run.
type Run interface {
	watched
	controlled
	ID() string
	Wait() host.Result
}

// watched is a run whose events can be read.
type watched interface {
	Events(from uint64) iter.Seq2[host.Event, error]
	CopyEvents(ctx context.Context, w io.Writer, from uint64) error
}

// controlled is a run that can be told things.
type controlled interface {
	Waits(interactionID string) bool
	Send(ctx context.Context, prompt string) error
	Approve(ctx context.Context, interactionID string, updatedInput json.RawMessage) error
	Deny(ctx context.Context, interactionID, reason string) error
	Answer(ctx context.Context, interactionID, text string) error
	SetModel(ctx context.Context, model string) error
	Interrupt(ctx context.Context) error
	End(ctx context.Context) error
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// realHost is host.Host as the commands want it.
type realHost struct{ *host.Host }

var _ Host = realHost{}

// NewHost makes the real host.
func NewHost(o host.Options) (Host, error) {
	h, err := host.New(o)
	if err != nil {
		return nil, err
	}
	return realHost{h}, nil
}

// Start keeps a nil *host.Run from becoming a Run that is not nil.
func (h realHost) Start(ctx context.Context, spec host.RunSpec) (Run, error) {
	r, err := h.Host.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Adopt makes a list of Runs.
func (h realHost) Adopt(ctx context.Context) ([]Run, error) {
	adopted, err := h.Host.Adopt(ctx)
	runs := make([]Run, len(adopted))
	for i, r := range adopted {
		runs[i] = r
	}
	return runs, err
}

// Open does the same for recorded runs.
func (h realHost) Open(ctx context.Context, ref string) (Recorded, error) {
	r, err := h.Host.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	return r, nil
}
