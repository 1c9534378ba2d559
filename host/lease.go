package host

import (
	"context"
	"errors"
	"time"

	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/pluginapi"
)

// LeaseTime is how long a lease lasts that is not asked for again.
const LeaseTime = 30 * time.Second

// Lease makes holder, a name of the caller's choice, the one of those who are
// attached to the run that types, for LeaseTime; asked for again by the same it
// lasts longer. While another has it this is INVALID_STATE_TRANSITION, unless steal is
// set. It keeps nobody from Send and the like: those who are attached heed it.
func (r *Run) Lease(ctx context.Context, holder string, steal bool) error {
	return r.lend(shim.Lease{Holder: holder, For: LeaseTime, Steal: steal})
}

// GiveBack ends a lease of holder's.
func (r *Run) GiveBack(ctx context.Context, holder string) error {
	return r.lend(shim.Lease{Holder: holder})
}

func (r *Run) lend(lease shim.Lease) error {
	err := r.backend.command("lease", func(c *shim.Conn) error { return c.Lend(lease) })
	if errors.Is(err, pluginapi.CodeInternal) {
		return nil // a shim of an older build knows no leases
	}
	return err
}
