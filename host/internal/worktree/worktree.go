// Package worktree keeps git worktrees for runs: each is a folder of amux's own, on a
// branch amux/NAME of the user's repository.
//
// A worktree is leased: its record names the runs that use it, and while one of them lives,
// which its lock and its mark say, nobody removes the worktree. Nobody removes one either
// that holds what is nowhere else, but by Drop with discard. What is made is recorded
// before it is made, and what is removed before it is removed, so that after the death of
// amux at any moment Sweep finishes what was begun.
//
// The repository is not trusted (see package git). Of it amux changes the branch and the
// entry in its list of work trees, which both go with the worktree, and the files of the
// user's work tree by Merge; never its index, its configuration or another branch.
package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/git"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
)

// Store has the worktrees of a configuration folder.
type Store struct {
	Dir  string // of the worktrees; Dir/.state has their records
	Env  []string
	Temp string // folder for temporary ones
	// Live reports whether a run has not ended, or something of it may be there.
	Live func(run string) bool
}

// States of a worktree.
const (
	making   = "making"   // no run has used it yet
	ready    = "ready"    // it may hold what is nowhere else
	removing = "removing" // nothing of it is needed any more
)

// Record is what is kept of a worktree: .state/NAME.json.
type Record struct {
	Version int       `json:"version"` // 1
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Path    string    `json:"path"`
	Root    string    `json:"root"`   // the user's work tree that it was made from
	Common  string    `json:"common"` // the repository
	Base    string    `json:"base"`   // the commit that it was made of
	Tips    []string  `json:"tips,omitempty"`
	Runs    []string  `json:"runs"` // that have used it, the newest last
	Created time.Time `json:"created"`
	// Merging is a merge that was begun, Merged the last one that was done.
	Merging *Merged `json:"merging,omitempty"`
	Merged  *Merged `json:"merged,omitempty"`
}

// Merged is what a merge has brought into a work tree.
type Merged struct {
	Root string    `json:"root"`
	Head string    `json:"head"` // the commit there
	Tree string    `json:"tree"` // what the files there became
	From string    `json:"from"` // the tree of the worktree
	Tip  string    `json:"tip"`  // its commit
	Time time.Time `json:"time"`
}

// Branch is the branch of a worktree.
func Branch(name string) string { return "amux/" + name }

// Refused says why nothing was done, and what may be done.
type Refused struct{ Why, Hint string }

func (r *Refused) Error() string { return r.Why }

func refuse(hint, format string, args ...any) error {
	return &Refused{fmt.Sprintf(format, args...), hint}
}

var nameRule = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// CheckName refuses a name that cannot be that of a folder and a branch.
func CheckName(name string) error {
	if !nameRule.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") {
		return refuse("letters, digits, . _ and -, such as fix-login", "invalid name %q for a worktree", name)
	}
	return nil
}

func (s *Store) state() string { return filepath.Join(s.Dir, ".state") }

func (s *Store) file(name string) string { return filepath.Join(s.state(), name+".json") }

func (s *Store) path(name string) string { return filepath.Join(s.Dir, name) }

// Read reads the record of a worktree.
func (s *Store) Read(name string) (*Record, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	data, err := foreign.Read(s.file(name), foreign.Rule{Limit: 1 << 20, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("see: amux worktree list", "there is no worktree %q", name)
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("the record of worktree %s: %w", name, err)
	}
	if r.Name != name || r.Path != s.path(name) {
		return nil, refuse("choose another name", "worktree %q is not %q", r.Name, name)
	}
	return &r, nil
}

// write writes a record, of which a reader finds all or nothing.
func (s *Store) write(r *Record) error {
	r.Version = 1
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	temp := filepath.Join(s.state(), "."+r.Name+".json")
	if err := os.WriteFile(temp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.file(r.Name))
}

// List reads all records, by name.
func (s *Store) List() ([]*Record, error) {
	entries, err := os.ReadDir(s.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []*Record
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || CheckName(name) != nil {
			continue
		}
		r, err := s.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, gone := errors.AsType[*Refused](err); gone {
			continue // removed a moment ago
		}
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, err
}

// User is the run that has the lease of a worktree; "" if it is free.
func (s *Store) User(r *Record) string {
	for _, run := range slices.Backward(r.Runs) {
		if s.Live(run) {
			return run
		}
	}
	return ""
}

// lockWait bounds the wait for another amux, which holds the lock for moments: to write
// records, branches and entries, and to merge.
const lockWait = time.Minute

// lock keeps other processes from changing worktrees until unlock. What takes long, to
// check files out and to delete them, goes on without it.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.state(), 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock := flock.New(filepath.Join(s.state(), ".lock"))
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil || !ok {
		_ = lock.Close()
		return nil, fmt.Errorf("the worktrees are locked by another amux: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// gitPath finds git.
func gitPath(env []string, dir string) (string, error) {
	path := command.Look("git", env, dir)
	if path == "" {
		return "", refuse("install git", "git is not in PATH")
	}
	return path, nil
}

// within is git within the repository of a worktree.
func (s *Store) within(ctx context.Context, r *Record) (*git.Within, error) {
	path, err := gitPath(s.Env, r.Common)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(r.Common, "objects")); err != nil {
		return nil, refuse("if nothing in it is needed: amux worktree drop --discard "+r.Name, "the repository of worktree %s is gone: %s", r.Name, r.Common)
	}
	return git.NewWithin(ctx, path, r.Common, s.Env)
}

// admin is the entry of a worktree in the repository's list; "" if there is none. The file
// gitdir in it names the worktree. A git that was killed may have written none of the name, or
// the beginning of it.
func (r *Record) admin() string {
	dir := filepath.Join(r.Common, "worktrees", r.Name)
	want := filepath.ToSlash(filepath.Join(r.Path, ".git"))
	data, err := foreign.Read(filepath.Join(dir, "gitdir"), foreign.Rule{Limit: 64 << 10, NoLink: true})
	got := strings.TrimRight(string(data), "\r\n")
	if err == nil && got == want {
		return dir
	}
	if _, none := os.Lstat(dir); none == nil && r.State != ready && (err == nil || errors.Is(err, fs.ErrNotExist)) && strings.HasPrefix(want, got) {
		return dir
	}
	return ""
}

// Sweep finishes what a process that died has begun: worktrees that were being made or
// removed are removed, merges that were going on are taken back.
func (s *Store) Sweep(ctx context.Context) error {
	list, err := s.List()
	for _, r := range list {
		if r.State == ready && r.Merging == nil || r.State == making && s.User(r) != "" {
			continue
		}
		err = errors.Join(err, s.finish(ctx, r.Name))
	}
	empty(s.Dir)
	return err
}

// finish is Sweep for one worktree.
func (s *Store) finish(ctx context.Context, name string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.Read(name)
	if err != nil {
		return nil // somebody else has
	}
	return s.finishLocked(ctx, r)
}

func (s *Store) finishLocked(ctx context.Context, r *Record) error {
	switch {
	case r.State == making && s.User(r) == "":
		return s.remove(ctx, r, r.Base)
	case r.State == removing:
		return s.remove(ctx, r, r.Tips...)
	case r.Merging != nil:
		return s.takeBack(ctx, r)
	}
	return nil
}

// away begins the name of a folder that is on its way out.
const away = ".removing-"

// empty deletes the folders that are on their way out.
func empty(dir string) {
	entries, _ := os.ReadDir(dir) // there may be none
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), away) {
			_ = removeAll(filepath.Join(dir, e.Name()))
		}
	}
}

// removeAll also deletes what is in folders that nobody may write to.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// remove removes all of a worktree: the folder out of its place, the entry, the branch if it
// is at one of those commits, the record. The caller holds the lock; empty deletes the rest.
func (s *Store) remove(ctx context.Context, r *Record, tips ...string) error {
	r.State, r.Tips = removing, tips
	if err := s.write(r); err != nil {
		return err
	}
	err := os.Rename(r.Path, filepath.Join(s.Dir, away+ulid.Make().String()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if w, err := s.within(ctx, r); err == nil {
		if dir := r.admin(); dir != "" {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		_ = os.Remove(filepath.Join(r.Common, "worktrees")) // if it is empty, as git does
		if _, err := w.RemoveBranch(ctx, Branch(r.Name), tips...); err != nil {
			return err
		}
	} else if _, gone := errors.AsType[*Refused](err); !gone {
		return err
	}
	return errors.Join(os.RemoveAll(s.mergeDir(r)), os.RemoveAll(s.keptDir(r)), os.Remove(s.file(r.Name)))
}
