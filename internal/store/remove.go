package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// removing begins the name of a folder that is on its way out.
const removing = ".removing-"

// Delete removes a run that the caller has locked. It is gone from every list at
// once, whatever interrupts the removal of its files.
func (r *Run) Delete() error {
	r.MarkEnded()
	away := filepath.Join(r.root, removing+r.ID)
	if err := os.Rename(r.Dir, away); err != nil {
		return os.RemoveAll(r.Dir) // where open files keep their folder from moving
	}
	return os.RemoveAll(away)
}

// Unbegun reports that a folder has been of no run for that long: whoever made it was
// killed before it had written run.json.
func (r *Run) Unbegun(age time.Duration) bool {
	info, err := os.Stat(r.Dir)
	if err != nil || time.Since(info.ModTime()) < age {
		return false
	}
	entries, err := os.ReadDir(r.Dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() != "lock" && e.Name() != ".run.json"
	})
}

// DeleteUnbegun removes a folder that is of no run, and says whether it has.
func (r *Run) DeleteUnbegun() bool {
	if r.Lock() != nil {
		return false
	}
	defer r.Unlock()
	return r.Unbegun(0) && r.Delete() == nil
}

// Sweep ends removals that were interrupted.
func (s *Store) Sweep() {
	for _, name := range names(s.root) {
		if strings.HasPrefix(name, removing) {
			_ = os.RemoveAll(filepath.Join(s.root, name))
		}
	}
}

// LockNames keeps other processes from giving a run a name until unlock.
func (s *Store) LockNames() (unlock func(), err error) {
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(s.root, ".names.lock"))
	for deadline := time.Now().Add(lockWait); ; time.Sleep(time.Millisecond) {
		ok, err := lock.TryLock()
		if err != nil {
			return nil, err
		}
		if ok {
			return func() { _ = lock.Close() }, nil
		}
		if time.Now().After(deadline) {
			return nil, ErrLocked
		}
	}
}
