package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Keep is what is kept of runs that have ended, whichever limit comes first: see host.Keep.
type Keep struct {
	Runs  int
	Time  time.Duration
	Bytes int64
}

// limits are those of Keep, with the defaults; no limit is as much as can be.
func (k Keep) limits() Keep {
	k.Runs, k.Time, k.Bytes = cmp.Or(k.Runs, 1000), cmp.Or(k.Time, 30*24*time.Hour), cmp.Or(k.Bytes, 5<<30)
	if k.Runs < 0 {
		k.Runs = math.MaxInt
	}
	if k.Time < 0 {
		k.Time = math.MaxInt64
	}
	if k.Bytes < 0 {
		k.Bytes = math.MaxInt64
	}
	return k
}

// over reports whether there are so many more runs than are kept that the oldest go. To find them
// takes a look at the index, or into each record, which is not to follow every end of a run.
func (k Keep) over(runs int) bool { return runs-k.Runs > k.Runs/20 }

const (
	// sizeEvery is how often ages and sizes of all runs are looked at.
	sizeEvery = 10 * time.Minute
	// strangeAge is how old a thing must be that looks left over but may be of a
	// run that another configuration folder knows.
	strangeAge = time.Hour
)

// Removed is one thing that Clean has removed, or would.
type Removed struct {
	Kind string `json:"kind"` // run, temp dir, socket, plugin copy; journals: what packing them saves
	Path string `json:"path"`
	Why  string `json:"why"`
	Size int64  `json:"size"`
}

// deleteWait is how long Delete waits for a host that has told the end of its run
// and is clearing up.
const deleteWait = 5 * time.Second

// ErrActive is inside the error of a run that has not ended.
var ErrActive = errors.New("the run has not ended")

// Delete removes the record of a run that has ended. Its error holds ErrActive if that has
// not, and record.ErrNone if it is gone.
func (a *Archive) Delete(ctx context.Context, dir *store.Run) error {
	gone := func() error { return record.NoRun(dir.ID) }
	for deadline := time.Now().Add(deleteWait); ; {
		err := dir.Lock()
		if err == nil {
			break
		}
		if errors.Is(err, fs.ErrNotExist) {
			return gone()
		}
		if !errors.Is(err, store.ErrLocked) {
			return folders.Error("folder of the run", dir.Dir, err)
		}
		// Who holds it may be its host, or somebody who deletes it as we do.
		info, err := record.Read(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return gone()
		}
		if err != nil || info.End == nil || time.Now().After(deadline) {
			return activeConflict(dir.ID)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer dir.Unlock()
	meta, err := dir.ReadMeta()
	if errors.Is(err, fs.ErrNotExist) {
		return gone() // it was deleted, or never begun, before we had the lock
	}
	if info, lives := record.Shim(dir); lives && !record.WaitGone(ctx, info) {
		return activeConflict(dir.ID) // its host has died a moment ago, or it does without one
	}
	if info, err := record.Read(dir); err == nil && info.End == nil {
		a.Sweep(meta) // nobody will end it, and nothing of it may live on
		_ = os.RemoveAll(meta.TempDir)
	}
	_ = os.Remove(folders.Socket(a.RuntimeDir, dir.ID))
	if err := dir.Delete(); err != nil {
		return folders.Error("folder of the run", dir.Dir, err)
	}
	return nil
}

func activeConflict(id string) *pluginapi.Error {
	e := pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s has not ended", id).WithHint("stop it first: amux stop %s", record.ShortID(id))
	e.Err = ErrActive
	return e
}

// Retain applies the limits of Keep to the runs that have ended. How old a run is, its record
// says: its id may be of any time, since a caller may choose it. It costs a look at one folder
// where there is nothing to do, or where another call is at it.
func (a *Archive) Retain(ctx context.Context) error {
	if !a.retaining.TryLock() {
		return nil
	}
	defer a.retaining.Unlock()
	ids := a.Store.List()
	stamp := filepath.Join(a.ConfigDir, "runs", ".sized")
	info, err := os.Stat(stamp)
	sizes := err != nil || time.Since(info.ModTime()) > sizeEvery
	if !sizes && !a.Keep.limits().over(len(ids)) {
		return nil
	}
	kept, _, err := a.retain(ctx, ids, sizes, false)
	if sizes && err == nil {
		a.packOld(ctx, kept)
	}
	if sizes && len(ids) > 0 {
		_ = os.WriteFile(stamp, nil, 0o600) // a look more at the next end of a run
	}
	return err
}

// ended is a run that is not marked as active.
type ended struct {
	dir     *store.Run
	at      time.Time // when it ended
	bytes   int64     // of its record; 0: not known
	indexed bool      // its times are those of the index
}

// endedAt is when a run ended, as far as its record says: else when it was made, or
// when its folder was changed last.
func endedAt(dir *store.Run) time.Time {
	info, err := record.Read(dir)
	switch {
	case err == nil && info.Ended != nil:
		return *info.Ended
	case err == nil && !info.Meta.Created.IsZero():
		return info.Meta.Created
	}
	if folder, err := os.Stat(dir.Dir); err == nil {
		return folder.ModTime()
	}
	return time.Now()
}

// ended are the runs that are not marked as active, the one that ended last first: by the index,
// and by the records of those that it lacks.
func (a *Archive) ended(ctx context.Context, ids []string) ([]ended, error) {
	active := map[string]bool{}
	for _, id := range a.Store.Active() {
		active[id] = true
	}
	type told struct {
		at    time.Time
		bytes int64
	}
	index := make(map[id]told, len(ids))
	here := make(map[id]bool, len(ids))
	for _, name := range ids {
		if run, ok := idOf([]byte(name)); ok {
			here[run] = true
		}
	}
	// The records tell what an index does not that cannot be read.
	_, err := readIndex(ctx, filepath.Join(a.ConfigDir, store.IndexName), time.Time{}, map[id]bool{}, func(e *Entry) {
		if run, ok := idOf([]byte(e.RunID)); ok && here[run] {
			index[run] = told{e.Ended, e.Bytes}
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		a.Log.Named("index").Warn("the index of runs cannot be read", "error", err)
	}
	runs := make([]ended, 0, len(ids))
	for _, name := range ids {
		if active[name] {
			continue
		}
		dir := a.Store.Run(name)
		if run, ok := idOf([]byte(name)); ok {
			if told, ok := index[run]; ok {
				runs = append(runs, ended{dir, told.at, told.bytes, true})
				continue
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runs = append(runs, ended{dir: dir, at: endedAt(dir)})
	}
	slices.SortStableFunc(runs, func(x, y ended) int { return y.at.Compare(x.at) })
	return runs, nil
}

// retain deletes, or names, what is over the limits; of those of the size only with sizes. It returns
// what is kept, too, the one that ended last first.
func (a *Archive) retain(ctx context.Context, ids []string, sizes, dry bool) (kept []ended, removed []Removed, _ error) {
	runs, err := a.ended(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	keep := a.Keep.limits()
	if sizes && keep.Bytes < math.MaxInt64 {
		measure(runs, keep.Bytes)
	}
	var total int64
	full := false
	for _, run := range runs {
		if err := ctx.Err(); err != nil {
			return kept, removed, err
		}
		dir := run.dir
		if !run.indexed && dir.Unbegun(strangeAge) {
			if dry || dir.DeleteUnbegun() {
				removed = append(removed, Removed{"run", filepath.ToSlash(dir.Dir), "it was never begun", 0})
			}
			continue
		}
		size := run.bytes
		why := keep.why(len(kept), run.at)
		if why == "" && sizes && (full || size > keep.Bytes-total) {
			why, full = fmt.Sprintf("more than %s", bytesText(keep.Bytes)), true // the older ones go, not only large ones
		}
		// Nothing goes by the word of the index alone: one that it has wrong goes by its age only.
		if why != "" && run.indexed {
			if at := endedAt(dir); at.Sub(run.at).Abs() > time.Second {
				why = keep.why(0, at)
			}
		}
		if why == "" {
			kept = append(kept, run)
			total += size
			continue
		}
		if size == 0 {
			size = folderSize(dir.Dir)
		}
		if !dry {
			err := a.Delete(ctx, dir)
			if errors.Is(err, ErrActive) || errors.Is(err, record.ErrNone) {
				continue // it has come alive, or was deleted by somebody else
			}
			if err != nil {
				return kept, removed, err
			}
		}
		removed = append(removed, Removed{"run", filepath.ToSlash(dir.Dir), why, size})
	}
	return kept, removed, nil
}

// measure finds out how large the records are: as the index says, where that says that they fit.
func measure(runs []ended, most int64) {
	total := int64(0)
	for i := range runs {
		run := &runs[i]
		if run.bytes <= 0 {
			run.bytes = folderSize(run.dir.Dir)
		}
		if run.bytes > most-total {
			for i := range runs {
				runs[i].bytes = folderSize(runs[i].dir.Dir)
			}
			return
		}
		total += run.bytes
	}
}

// why says why a run goes that ended then, where so many newer ones are kept; "": it stays.
func (k Keep) why(kept int, at time.Time) string {
	switch {
	case kept >= k.Runs:
		return fmt.Sprintf("more than %s runs", thousands(k.Runs))
	case time.Since(at) > k.Time:
		return fmt.Sprintf("older than %d days", k.Time/(24*time.Hour))
	}
	return ""
}

// thousands is a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func bytesText(n int64) string { return fmt.Sprintf("%d GB", n>>30) }

// folderSize is what the files in a folder hold.
func folderSize(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // what cannot be read counts nothing
		}
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}

// Clean applies the limits of Retain and removes what hosts that died have left
// behind: temp dirs, sockets, copies of plugins that no run names and that are
// not current. With dry it only says what it would remove.
func (a *Archive) Clean(ctx context.Context, dry bool) ([]Removed, error) {
	kept, removed, err := a.retain(ctx, a.Store.List(), true, dry)
	if err != nil {
		return removed, err
	}
	if !dry {
		if journals, saved := a.packAll(ctx, kept); journals > 0 {
			removed = append(removed, Removed{"journals", filepath.ToSlash(filepath.Join(a.ConfigDir, "runs")), fmt.Sprintf("%s of them packed", thousands(journals)), saved})
		}
	}
	// Who is removed for what reason; the rest is one rule: nothing alive.
	for _, left := range slices.Concat(a.leftTempDirs(), a.leftSockets()) {
		if dry || os.RemoveAll(filepath.FromSlash(left.Path)) == nil {
			removed = append(removed, left)
		}
	}
	named := map[string]bool{}
	for _, id := range a.Store.List() {
		meta, err := a.Store.Run(id).ReadMeta()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, nil // what it names is not known, so no copy is taken from it
		}
		named[meta.PluginHash] = true
	}
	for _, path := range a.Registry.UnusedCopies(func(hash string) bool { return named[hash] }, strangeAge) {
		size := folderSize(path)
		if dry || os.RemoveAll(path) == nil {
			removed = append(removed, Removed{"plugin copy", filepath.ToSlash(path), "no run names it", size})
		}
	}
	if !dry {
		a.Store.Sweep()
	}
	return removed, nil
}

// leftOver reports whether a thing of the run id, which was changed last at that
// time, is of a run that has no process any more.
func (a *Archive) leftOver(id string, changed time.Time) bool {
	dir := a.Store.Run(id)
	if _, err := dir.ReadMeta(); err == nil {
		return !record.Hosted(dir)
	}
	// A run of another configuration folder, or none.
	return time.Since(changed) > strangeAge &&
		!a.marked(id) && !folders.Answers(folders.Socket(a.RuntimeDir, id))
}

// leftTempDirs finds temp dirs of runs that nothing lives of.
func (a *Archive) leftTempDirs() (left []Removed) {
	entries, err := os.ReadDir(a.TempDir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "agent-mux-")
		info, err := e.Info()
		if !ok || err != nil || !e.IsDir() || !folders.IsOurs(info) {
			continue
		}
		replay := strings.HasPrefix(name, "replay-") && time.Since(info.ModTime()) > strangeAge
		if replay || IsID(name) && a.leftOver(name, info.ModTime()) {
			path := filepath.Join(a.TempDir, e.Name())
			left = append(left, Removed{"temp dir", filepath.ToSlash(path), "its run has ended", folderSize(path)})
		}
	}
	return left
}

// leftSockets finds sockets that nobody listens on.
func (a *Archive) leftSockets() (left []Removed) {
	entries, err := os.ReadDir(a.RuntimeDir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".sock")
		id := strings.ToUpper(name)
		info, err := e.Info()
		if !ok || err != nil || e.Type() != fs.ModeSocket || !IsID(id) {
			continue
		}
		path := filepath.Join(a.RuntimeDir, e.Name())
		if !folders.Answers(path) && a.leftOver(id, info.ModTime()) {
			left = append(left, Removed{"socket", filepath.ToSlash(path), "nobody listens on it", 0})
		}
	}
	return left
}

// ClaimName makes mark while no other process claims a name, and refuses a name
// that an active run has.
func (a *Archive) ClaimName(name string, mark func() error) error {
	if name == "" {
		return mark()
	}
	unlock, err := a.Store.LockNames()
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfigLock, "the names of runs: %w", fault.Plain(err))
	}
	defer unlock()
	for _, id := range a.Store.Active() {
		dir := a.Store.Run(id)
		meta, err := dir.ReadMeta()
		if err != nil || meta.Name != name {
			continue
		}
		if record.Hosted(dir) {
			return pluginapi.Errorf(pluginapi.CodeValidation, "run %s has the name %s and has not ended", id, name).
				WithHint("choose another name, or stop it: amux stop %s", record.ShortID(id))
		}
	}
	return mark()
}
