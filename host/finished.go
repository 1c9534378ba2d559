package host

import (
	"context"
	"io"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/shim"
)

// finished is a run that had ended when it was opened.
type finished struct {
	*recorded
	log    *eventlog.Log
	result Result
}

func (r *finished) lines(ctx context.Context, from uint64, yield func(line []byte) bool) error {
	return logLines(ctx, r.log, r.id(), from, yield)
}

func (r *finished) copy(ctx context.Context, w io.Writer, from uint64) error {
	return copyEvents(ctx, r.log, w, from)
}

func (r *finished) wait() Result { return r.result }
func (r *finished) over() bool   { return true }

func (r *finished) command(string, func(*shim.Conn) error) error { return r.notActive() }
func (r *finished) question(string, string) (string, error)      { return "", r.notActive() }
func (r *finished) waits(string) bool                            { return false }
func (r *finished) promptID() string                             { return newPromptID() }
