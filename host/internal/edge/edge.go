// Package edge names what a host reaches outside its process, so that package hosttest can
// put a machine of its own in place of this one.
package edge

import (
	"context"

	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/shim"
)

// Edges are how a host reaches shims, plugins and what runs have left.
type Edges struct {
	// Launch starts the shim of the run in dir, as shim.Launch does.
	Launch func(path, dir string, hello shim.Hello) (*shim.Launched, error)
	// Dial connects to a shim that runs.
	Dial shim.Dialer
	// Plugin starts a plugin's process.
	Plugin func(context.Context, adapter.Options) (*adapter.Process, error)
	// Sweep kills what a run has left.
	Sweep func(runID string)
}
