package host

import (
	"github.com/amux-dev/amux/host/store"
)

// sweepRun has nothing to do: with its shim every process of a run has ended.
func (a *archive) sweepRun(store.Meta) {}

// marked is false: see sweepRun.
func (a *archive) marked(string) bool { return false }
