package archive

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/store"
)

const (
	// packAge is how long a journal stays as it was written after the end of its run: who looks
	// at a run looks at a new one.
	packAge = time.Hour
	// packRate is how many bytes of a journal are packed and read again in a second, at least.
	packRate = 50 << 20
)

// packOld packs the journals of runs that ended some time ago, the oldest first, as far as a tenth
// of the caller's time allows. It remembers how far it got: a run that was looked at is not again.
func (a *Archive) packOld(ctx context.Context, runs []ended) {
	left := int64(1) << 62
	if deadline, ok := ctx.Deadline(); ok {
		left = int64(time.Until(deadline).Seconds() / 10 * packRate)
	}
	stamp := filepath.Join(a.ConfigDir, "runs", ".packed")
	var since time.Time
	if info, err := os.Stat(stamp); err == nil {
		since = info.ModTime()
	}
	done, all := since, true // all before this one are looked at
	for _, run := range slices.Backward(runs) {
		if !run.at.After(since) || time.Since(run.at) < packAge {
			continue
		}
		if ctx.Err() != nil || left <= 0 {
			break
		}
		if run.packable(a.Packer) {
			if info, err := os.Stat(run.dir.Path("journal")); err == nil && info.Size() > left {
				all = false // its turn comes where there is more time
				continue
			} else if err == nil {
				left -= info.Size()
			}
			a.pack(ctx, run.dir)
		}
		if all {
			done = run.at
		}
	}
	if done.After(since) && os.WriteFile(stamp, nil, 0o600) == nil {
		_ = os.Chtimes(stamp, done, done)
	}
}

// Pack packs the journals of all runs that have ended.
func (a *Archive) Pack(ctx context.Context) error {
	runs, err := a.ended(ctx, a.Store.List())
	if err == nil {
		a.packAll(ctx, runs)
	}
	return err
}

// packAll packs the journals of some runs, and returns how many it has, and by how much they are
// smaller.
func (a *Archive) packAll(ctx context.Context, runs []ended) (journals int, saved int64) {
	for _, run := range slices.Backward(runs) {
		if !run.packable(a.Packer) {
			continue
		}
		if less := a.pack(ctx, run.dir); less > 0 {
			journals, saved = journals+1, saved+less
		}
	}
	return journals, saved
}

// packable reports whether the journal of a run may be large enough.
func (e ended) packable(p record.Packer) bool {
	return e.bytes == 0 || e.bytes >= cmp.Or(p.Least, record.PackLeast)
}

// pack packs the journal of a run, if it has ended and nobody holds it. One that it cannot stays
// as it is.
func (a *Archive) pack(ctx context.Context, dir *store.Run) (saved int64) {
	saved, err := a.tryPack(ctx, dir)
	if err != nil {
		a.Log.Named("pack").Debug("a journal stays as it is", "run_id", dir.ID, "error", err)
	}
	return saved
}

func (a *Archive) tryPack(ctx context.Context, dir *store.Run) (saved int64, _ error) {
	ended := func() bool { // a run that a host may take up is not locked
		info, err := record.Read(dir)
		return err == nil && info.End != nil && !dir.Active()
	}
	if !ended() {
		return 0, nil
	}
	if err := dir.Lock(); err != nil {
		return 0, err
	}
	defer dir.Unlock()
	if _, lives := record.Shim(dir); lives || !ended() {
		return 0, nil
	}
	return a.Packer.Pack(ctx, dir.Path("journal"))
}
