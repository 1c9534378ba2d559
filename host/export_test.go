package host

import (
	"context"
	"time"

	"github.com/amux-dev/amux/internal/adapter"
)

// WholeFile is the diff of a request that writes a file whole.
var WholeFile = wholeFile

// Limit makes a host wait no longer than d for a plugin, and take no more than
// volume bytes for one input. It is called before the host has done anything.
func (h *Host) Limit(d time.Duration, volume int) {
	h.limits.Start, h.limits.Call, h.limits.Progress, h.limits.Stall, h.limits.volume = d, d, d, 5*d/2, volume
}

// CountSyncs has a host call f with the run when it would bring its journal and events
// to the disk.
func (h *Host) CountSyncs(f func(*Run) error) { h.syncing = f }

// LimitAnswers makes a host's questions wait for people no longer than d.
func (h *Host) LimitAnswers(d time.Duration) { h.limits.answer = d }

// LimitMemory lets the process of a plugin hold no more than that many bytes.
func (h *Host) LimitMemory(bytes int64) { h.limits.Memory = bytes }

// LimitStall bounds what the plugin processes of a run take together without progress.
func (h *Host) LimitStall(d time.Duration) { h.limits.Stall = d }

// CountDescribed has a host call f for each plugin process it starts, with whether that will be asked for its description.
func (h *Host) CountDescribed(f func(asked bool)) {
	start := h.edges.plugin
	h.edges.plugin = func(ctx context.Context, o adapter.Options) (*adapter.Process, error) {
		f(o.Description == nil)
		return start(ctx, o)
	}
}
