package shim

import (
	"time"

	"github.com/amux-dev/amux/host/journal"
)

// pause stops or continues every process of the tree.
func (k *keeper) pause(on bool, by string) error {
	k.mu.Lock()
	child, already := k.child, k.paused == on
	running := child != nil && !k.between(child)
	if running {
		k.paused = on
		k.runIdle()
	}
	k.mu.Unlock()
	if !running {
		return errNoChild
	}
	if already {
		return nil
	}
	kind, round := "resume", k.cfg.Tree.Continue
	if on {
		kind, round = "pause", k.cfg.Tree.Stop
	}
	k.append(journal.KindInput, journal.Encode(journal.Input{Kind: kind, By: by}))
	k.pausing.Lock()
	defer k.pausing.Unlock()
	// New processes may appear while the tree is walked, and one may be missed
	// whose parent exits meanwhile: until two rounds in a row find nothing to do.
	deadline := time.Now().Add(pauseTime)
	for quiet := 0; quiet < 2 && k.wantsPause(on); {
		quiet++
		if k.look(round) > 0 {
			if quiet = 0; time.Now().After(deadline) {
				return &RemoteError{"INTERNAL", kind + " reaches most processes of the run, but more are started all the time"}
			}
		}
	}
	return nil
}

// wantsPause reports whether nobody has asked for something else since.
func (k *keeper) wantsPause(on bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.paused == on && k.reason == "" && !k.ending
}
