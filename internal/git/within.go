package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/command"
)

// Within runs git in a repository itself, for what cannot be done elsewhere: to make and
// remove a branch and an entry in its list of work trees, and to ask about commits.
type Within struct {
	Path   string // of the program
	Env    []string
	Common string // the repository: what all its work trees share
	hooks  []string
}

// NewWithin returns git within a repository. Who owns that is not asked: see Open.
func NewWithin(ctx context.Context, path, common string, env []string) (*Within, error) {
	w := &Within{Path: path, Env: env, Common: common}
	list, err := w.Run(ctx, "config", "-z", "--name-only", "--get-regexp", `^hook\..*\.`)
	if failed, ok := errors.AsType[*Failure](err); ok && failed.Exit == 1 {
		return w, nil // none is set
	}
	for name := range strings.SplitSeq(list, "\x00") {
		if i := strings.LastIndexByte(name, '.'); i > 0 && !slices.Contains(w.hooks, name[:i]) {
			w.hooks = append(w.hooks, name[:i])
		}
	}
	return w, err
}

// environ overrides the settings of a repository that make git start programs, or write its
// configuration, when amux runs it.
func (w *Within) environ() []string {
	set := [][2]string{
		{"core.hooksPath", os.DevNull}, {"core.fsmonitor", "false"}, {"worktree.useRelativePaths", "false"},
		{"gc.auto", "0"}, {"maintenance.auto", "false"}, {"submodule.recurse", "false"}, {"log.showSignature", "false"},
	}
	for _, hook := range w.hooks { // of a git that has hooks in its configuration
		set = append(set, [2]string{hook + ".enabled", "false"}, [2]string{hook + ".event", ""})
	}
	env := append(Environ(w.Env), "GIT_DIR="+w.Common, "GIT_NO_REPLACE_OBJECTS=1", "GIT_CONFIG_COUNT="+strconv.Itoa(len(set)))
	for i, s := range set {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// Run runs a command that prints little.
func (w *Within) Run(ctx context.Context, args ...string) (string, error) {
	c := command.Command{Env: w.environ(), Cwd: w.Common}
	return Output(func(out io.Writer) error { return Run(ctx, c, w.Path, out, args) })
}

// Commit is the id of the commit that a name leads to; "" if there is none of that name.
func (w *Within) Commit(ctx context.Context, name string) (string, error) {
	id, err := w.Run(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", name+"^{commit}")
	if failed, ok := errors.AsType[*Failure](err); ok && failed.Exit == 1 {
		return "", nil
	}
	if err == nil && !IsID(id) {
		err = errors.New("git rev-parse printed no id")
	}
	return id, err
}

// MakeBranch makes a branch that does not exist.
func (w *Within) MakeBranch(ctx context.Context, branch, commit string) error {
	_, err := w.Run(ctx, "update-ref", "-m", "amux: made a worktree", "refs/heads/"+branch, commit, strings.Repeat("0", len(commit)))
	return err
}

// RemoveBranch removes a branch if it is at one of these commits; else it is left. Git holds
// a lock of the whole repository while it removes one, and a git that is killed leaves that
// lock to the user. So a branch that is a file is removed as a file.
func (w *Within) RemoveBranch(ctx context.Context, branch string, at ...string) (kept bool, err error) {
	ref := "refs/heads/" + branch
	for range 2 {
		now, err := w.Commit(ctx, ref)
		if err != nil {
			return true, err
		}
		if now == "" {
			w.removeFiles(ref)
			return false, nil
		}
		if !slices.Contains(at, now) {
			return true, nil
		}
		if !w.removeLoose(ref, now) {
			if _, err := w.Run(ctx, "update-ref", "-d", ref, now); err != nil {
				return true, err
			}
		}
	}
	return false, nil
}

// removeLoose removes a reference that is a file with this commit, as git does: while its
// lock is held.
func (w *Within) removeLoose(ref, commit string) bool {
	path := filepath.Join(w.Common, filepath.FromSlash(ref))
	if lockFile(path+".lock") != nil {
		return false
	}
	defer w.removeFiles(ref)
	data, err := readFile(path, 1<<10)
	return err == nil && strings.TrimSpace(string(data)) == commit && os.Remove(path) == nil
}

// staleAfter is how old the lock of a reference is that a killed git has left: git holds
// one for milliseconds.
const staleAfter = 2 * time.Second

// lockFile makes the file that is git's lock, and waits while somebody has it.
func lockFile(path string) error {
	for range 300 {
		lock, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			if err == nil {
				err = lock.Close()
			}
			return err
		}
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(path)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fs.ErrExist
}

// removeFiles removes what is left of a reference of ours that is gone: the lock of a git
// that was killed, its log, and the folders that were made for it.
func (w *Within) removeFiles(ref string) {
	path, log := filepath.Join(w.Common, filepath.FromSlash(ref)), filepath.Join(w.Common, "logs", filepath.FromSlash(ref))
	if _, err := os.Lstat(path); err != nil {
		_ = os.Remove(log)
		_ = os.Remove(filepath.Dir(log)) // if it is empty
	}
	_ = os.Remove(path + ".lock")
	_ = os.Remove(filepath.Dir(path)) // if it is empty
}
