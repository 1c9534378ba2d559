package record

import (
	"context"
	"encoding/json"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
)

// shimLives reports whether the process of a shim is there.
func shimLives(info shim.Info) bool {
	return info.BootID == process.BootID() && process.Alive(process.ID{PID: info.PID, Start: info.Start})
}

// Shim is what a run's folder says of its shim, and whether that is there.
func Shim(dir *store.Run) (info shim.Info, lives bool) {
	info, err := shim.ReadInfo(dir.Dir)
	return info, err == nil && shimLives(info)
}

// WaitGone waits a moment for the end of a shim, and reports whether it has come.
func WaitGone(ctx context.Context, info shim.Info) bool {
	for range 100 {
		if !shimLives(info) {
			return true
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// Detached reports whether a run may go on without a host.
func Detached(meta store.Meta) bool {
	var spec struct{ Detached bool }
	return json.Unmarshal(meta.Spec, &spec) == nil && spec.Detached
}

// Orphaned reports that the shim of a detached run is all that it has.
func Orphaned(dir *store.Run) bool {
	_, lives := Shim(dir)
	return lives && !dir.Held()
}

// Attended reports whether a run has all that it needs: a shim that lives, and a host.
func Attended(dir *store.Run) bool {
	_, lives := Shim(dir)
	return lives && dir.Held()
}

// Hosted reports whether somebody will write the rest of a run's events.
func Hosted(dir *store.Run) bool {
	_, lives := Shim(dir)
	return lives || dir.Held()
}
