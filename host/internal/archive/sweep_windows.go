package archive

import (
	"github.com/amux-dev/amux/internal/store"
)

// Sweep has nothing to do: with its shim every process of a run has ended.
func (a *Archive) Sweep(store.Meta) {}

// marked is false: see sweepRun.
func (a *Archive) marked(string) bool { return false }
