//go:build unix

package archive

import (
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/store"
)

// Sweep kills every process that carries the run's mark, and those without one
// that this process has adopted from a dead shim. It is for runs whose shim is
// gone.
func (a *Archive) Sweep(meta store.Meta) {
	for _, held := range process.Sweep(meta.RunID, a.Subreaper) {
		a.Log.Named("run").Warn("a process of a run that has ended could not be ended", "run_id", meta.RunID, "process", held)
	}
}

// marked reports whether a process carries the mark of the run.
func (a *Archive) marked(id string) bool { return len(process.Marked(id)) > 0 }
