// Package edit changes files that belong to somebody else: the settings of agents.
package edit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Limit is the largest file that is read or written.
const Limit = 16 << 20

// File is one that may be changed.
type File struct {
	Path string
	// Project is the folder that Path is below, for a file in a repository: no part of the
	// path within it may be a link. Empty for a file of the user's, which must belong to
	// this user and be no link.
	Project string
}

// Read returns what the file holds; nothing if there is none.
func (f File) Read() ([]byte, error) {
	data, err := foreign.Read(f.Path, foreign.Rule{Limit: Limit})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, f.failed("read", err)
}

// Lock waits for other processes of amux that change such files. dir is where the lock is.
func Lock(ctx context.Context, dir string) (unlock func(), _ error) {
	lock := flock.New(filepath.Join(dir, "settings-of-agents.lock"), flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	ok, err := lock.TryLockContext(waiting, 10*time.Millisecond)
	if err != nil && waiting.Err() == nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s cannot be locked: %w", lock.Path(), fault.Plain(err))
	}
	if !ok {
		return nil, pluginapi.Errorf(pluginapi.CodeConfigLock, "another amux is changing the settings of agents").WithHint("try again when it has finished")
	}
	return func() { _ = lock.Close() }, nil
}

const (
	lockTime = 30 * time.Second
	tries    = 3
)

// Change replaces the file by what edit makes of it, so that it holds the old content or
// the new whenever this process dies. It keeps the file's mode; a new one is the user's
// alone. If somebody else changes the file meanwhile, edit is called again.
func (f File) Change(edit func(before []byte) ([]byte, error)) error {
	for range tries {
		before, mode, err := f.current()
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil {
			return err
		}
		if len(after) > Limit {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%s would be larger than %d MiB", f.Path, Limit>>20)
		}
		done, err := f.replace(before, after, mode)
		if done || err != nil {
			return f.failed("changed", err)
		}
	}
	return pluginapi.Errorf(pluginapi.CodeConfigLock, "%s: another program changes it all the time", f.Path).WithHint("close the agent and try again")
}

// current is the content and the mode of a file that may be changed.
func (f File) current() (data []byte, mode fs.FileMode, err error) {
	rule := foreign.Rule{Limit: Limit, NoLink: true, Private: f.Project == ""}
	if f.Project != "" {
		name, err := filepath.Rel(f.Project, f.Path)
		if err == nil {
			err = foreign.CheckIn(f.Project, filepath.ToSlash(name))
		}
		if err != nil {
			return nil, 0, f.failed("changed", err)
		}
	}
	data, err = foreign.Read(f.Path, rule)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, f.failed("changed", err)
	}
	info, err := os.Lstat(f.Path)
	if err != nil {
		return nil, 0, f.failed("changed", err)
	}
	return data, info.Mode().Perm(), nil
}

// replace writes the new content; done is false if the file has changed before it could.
func (f File) replace(before, after []byte, mode fs.FileMode) (done bool, retErr error) {
	dir := filepath.Dir(f.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(f.Path)+"-*")
	if err != nil {
		return false, err
	}
	defer func() {
		if !done || retErr != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(after)
	if err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return false, err
	}
	now, _, err := f.current()
	if err != nil || !bytes.Equal(now, before) {
		return false, err
	}
	return true, os.Rename(temp.Name(), f.Path)
}

// failed says which file, why, and the way out.
func (f File) failed(what string, err error) error {
	if _, ok := errors.AsType[*pluginapi.Error](err); ok || err == nil {
		return err
	}
	e := pluginapi.Errorf(pluginapi.CodeConfig, "%s cannot be %s: %w", f.Path, what, fault.Plain(err))
	if fix := foreign.Fix(err); fix != "" {
		return e.WithHint("%s", fix)
	}
	return e
}
