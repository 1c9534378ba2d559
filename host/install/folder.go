package install

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/pluginapi"
)

// Folder is the folder of plugins: what is installed, which keys the user trusts, which
// plugins a person has let run and which of them serves which agent. Its methods are safe
// beside other processes that change the folder.
type Folder struct {
	dir  string
	step func(step string) error // for tests; nil: nothing fails
	// supervision knows how to end what a dead writer has left running.
	supervision Supervision
}

func (d *Folder) path(name string) string { return filepath.Join(d.dir, name) }

// LockFile is the path of the user's lock.
func (d *Folder) LockFile() string { return d.path(lockName) }

func (d *Folder) fault(step string) error {
	if d.step == nil {
		return nil
	}
	return d.step(step)
}

// lockTime is how long a writer waits for another.
const lockTime = 30 * time.Second

// lock waits for other writers and clears up what those that died have left.
func (d *Folder) lock() (unlock func(), _ error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, WriteError(err)
	}
	l := flock.New(d.path(".lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	ok, err := l.TryLockContext(ctx, 20*time.Millisecond)
	if err != nil && ctx.Err() == nil {
		return nil, WriteError(err)
	}
	if !ok {
		return nil, pluginapi.Errorf(pluginapi.CodeConfigLock, "another amux is changing the plugins in %s", d.dir)
	}
	d.supervision.sweepProbes(d.path("staging"))
	removeAll(d.path("staging"))
	for _, name := range []string{lockName, trustName, seenName, ownersName, indexesName} {
		leftovers, _ := filepath.Glob(d.path("." + name + "-*")) // of files that were being replaced
		for _, path := range leftovers {
			_ = os.Remove(path)
		}
	}
	return func() { _ = l.Unlock() }, nil
}

// ClearUp ends and removes what a writer that was killed has left, unless another is at
// work. It costs a look at one folder where there is nothing to do.
func (in *Installer) ClearUp() {
	if entries, err := os.ReadDir(in.path("staging")); err != nil || len(entries) == 0 {
		return
	}
	l := flock.New(in.path(".lock"), flock.SetPermissions(0o600))
	if ok, err := l.TryLock(); err != nil || !ok {
		return
	}
	_ = l.Unlock()
	if unlock, err := in.lock(); err == nil {
		unlock()
	}
}

func (d *Folder) writeLock(lock *Lock) error {
	if err := d.fault("lock to be replaced"); err != nil {
		return err
	}
	if err := ReplaceFile(d.LockFile(), lock.Bytes()); err != nil {
		return err
	}
	return d.fault("lock replaced")
}

// storedVersions are those of a plugin in the store, for any platform.
func (d *Folder) storedVersions(name string) []string {
	entries, _ := os.ReadDir(filepath.Join(d.path("store"), name))
	var versions []string
	for _, e := range entries {
		if e.IsDir() && checkVersion(e.Name()) == nil {
			versions = append(versions, e.Name())
		}
	}
	return versions
}
