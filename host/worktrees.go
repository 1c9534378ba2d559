package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/worktree"
	"github.com/amux-dev/amux/internal/changes"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/git"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Worktrees are the git worktrees that runs were given: see Workspace.Worktree. They lie in
// ConfigDir/worktrees, each on a branch amux/NAME of the user's repository.
//
// The runs that use a worktree have its lease: while one of them has not ended nobody
// removes it. Nobody removes one either that holds what is nowhere else, but by Drop with
// discard.
type Worktrees struct {
	h     *Host
	store *worktree.Store
}

// WorktreesOf returns the worktrees of a host's configuration folder. It touches no file.
func WorktreesOf(h *Host) *Worktrees { return &Worktrees{h, worktreesOf(h, h.opts.Env)} }

func worktreesOf(h *Host, env []string) *worktree.Store {
	return &worktree.Store{
		Dir: filepath.Join(h.opts.ConfigDir, "worktrees"), Env: env, Temp: h.opts.TempDir,
		Live: func(run string) bool {
			if !archive.IsID(run) {
				return false
			}
			dir := h.store.Run(run)
			live := dir.Active() || record.Hosted(dir)
			for until := time.Now().Add(clearTime); live && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
				if end, err := record.Read(dir); err != nil || end.End == nil {
					break
				}
				live = dir.Active() || record.Hosted(dir) // its host clears up
			}
			return live
		},
	}
}

// clearTime is how long a run that has ended keeps its worktree at most, while its host
// clears up.
const clearTime = 5 * time.Second

// Worktree is one of them.
type Worktree struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Branch  string   `json:"branch"`
	Root    string   `json:"root"`    // the user's work tree
	Base    string   `json:"base"`    // the commit that it was made of
	Runs    []string `json:"runs"`    // that have used it, the newest last
	Run     string   `json:"run"`     // that uses it now; empty if none does
	Commits int      `json:"commits"` // that are on no other branch
	Unsaved int      `json:"unsaved"` // files that are not committed
	// Files, Added and Deleted are what differs from Base, committed or not.
	Files   int `json:"files"`
	Added   int `json:"added"`
	Deleted int `json:"deleted"`
	// Dirty says that it holds what is nowhere else, Strange that this cannot be told, and why.
	Dirty   bool       `json:"dirty"`
	Strange string     `json:"strange,omitempty"`
	Merged  *time.Time `json:"merged,omitempty"` // when all that it holds now was merged
	Created time.Time  `json:"created"`
}

func (w *Worktrees) describe(r *worktree.Record, st worktree.Status) Worktree {
	found := Worktree{
		Name: r.Name, Path: filepath.ToSlash(r.Path), Branch: worktree.Branch(r.Name), Root: filepath.ToSlash(r.Root), Base: r.Base,
		Runs: r.Runs, Run: st.Run, Commits: st.Commits, Unsaved: st.Unsaved.Files, Strange: st.Strange,
		Files: st.Changed.Files, Added: st.Changed.Added, Deleted: st.Changed.Deleted, Dirty: st.Dirty(), Created: r.Created,
	}
	if worktree.IsMerged(r, st) {
		found.Merged = &r.Merged.Time
	}
	return found
}

// List lists the worktrees by name, and what they hold. First it finishes what processes
// that died have begun to make or to remove.
func (w *Worktrees) List(ctx context.Context) ([]Worktree, error) {
	err := w.store.Sweep(ctx)
	records, listErr := w.store.List()
	list := []Worktree{}
	for _, r := range records {
		st, one := w.store.Status(ctx, r)
		if one != nil {
			st.Strange = one.Error()
		}
		list = append(list, w.describe(r, st))
	}
	return list, worktreeError("", errors.Join(err, listErr))
}

// Diff compares a worktree's files as they are now with the commit that it was made of.
// Close it.
func (w *Worktrees) Diff(ctx context.Context, name string) (*Diff, error) {
	r, err := w.store.Read(name)
	if err != nil {
		return nil, worktreeError(name, err)
	}
	g, from, to, done, err := w.store.Diff(ctx, r)
	if err != nil {
		done()
		return nil, worktreeError(name, err)
	}
	return &Diff{nil, changes.Between(g, from, to, done)}, nil
}

// Merge brings what a worktree holds into the files of the user's work tree, whose folder it
// returns with the files that changed. It merges as git does, and touches neither index nor
// branches. It changes nothing where that work tree has changes that are not committed, where
// both changed the same lines, and while a run uses the worktree.
func (w *Worktrees) Merge(ctx context.Context, name string) (root string, files []ChangedFile, err error) {
	merged, r, err := w.store.Merge(ctx, name)
	if err != nil {
		return "", nil, worktreeError(name, err)
	}
	return filepath.ToSlash(r.Root), changedFiles(merged), nil
}

// Drop removes a worktree and its branch. One that holds what is nowhere else is removed only
// with discard, or after Merge.
func (w *Worktrees) Drop(ctx context.Context, name string, discard bool) error {
	_, err := w.store.Drop(ctx, name, discard)
	return worktreeError(name, err)
}

// Prune removes the worktrees that no run uses and that hold nothing that is not elsewhere.
// It returns their names. With dry it only names them.
func (w *Worktrees) Prune(ctx context.Context, dry bool) ([]string, error) {
	removed, err := w.store.Prune(ctx, dry)
	names := make([]string, len(removed))
	for i, r := range removed {
		names[i] = r.Name
	}
	return names, worktreeError("", err)
}

func (w *Worktrees) sweep(ctx context.Context) error { return worktreeError("", w.store.Sweep(ctx)) }

// Check is what came of a command in a run's worktree.
type Check struct {
	ExitCode int           `json:"exit_code"` // -1: it was not started, or took too long
	TimedOut bool          `json:"timed_out,omitempty"`
	Output   string        `json:"output"` // the end of what it printed
	Time     time.Duration `json:"time_ns"`
}

// mostCheck is how much of a check's output is kept.
const mostCheck = 16 << 10

// Check runs a command line of the user's in the worktree of a run that has ended, by the
// shell, and ends all that it started. It returns nil where the run has no worktree, or goes
// on.
func (w *Worktrees) Check(ctx context.Context, run RunInfo, line string, limit time.Duration) (*Check, error) {
	spec := run.Spec.Worktree
	if spec == nil {
		return nil, nil
	}
	r := w.store.Of(run.ID, spec.Name)
	if r == nil || w.store.User(r) != "" {
		return nil, nil
	}
	argv := []string{"sh", "-c", line}
	if runtime.GOOS == "windows" {
		argv = []string{"cmd", "/c", line}
	}
	if command.Look(argv[0], w.h.opts.Env, run.Cwd) == "" {
		return nil, invalid("there is no %s in PATH", argv[0])
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	var out tail
	c := command.Command{Env: git.Elsewhere(w.h.opts.Env), Cwd: filepath.FromSlash(run.Cwd), Time: limit, Group: true, Leaves: true}
	result := c.Run(ctx, argv, &out)
	out.Write(result.Stderr)
	return &Check{
		ExitCode: result.ExitCode, TimedOut: errors.Is(ctx.Err(), context.DeadlineExceeded), Output: strings.ToValidUTF8(string(out.data), "\uFFFD"),
		Time: time.Since(began),
	}, nil
}

// tail keeps the end of what is written.
type tail struct{ data []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p[max(0, len(p)-mostCheck):]...)
	if more := len(t.data) - mostCheck; more > 0 {
		t.data = bytes.Clone(t.data[more:])
	}
	return len(p), nil
}

// worktreeError makes one of our errors of what went wrong with a worktree.
func worktreeError(name string, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*worktree.Refused](err); ok {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s", refused.Why).WithHint("%s", refused.Hint)
	}
	if name != "" {
		name = " " + name
	}
	code := pluginapi.CodeInternal
	if fault.Full(err) || strings.Contains(err.Error(), "No space left on device") {
		code = pluginapi.CodeDiskFull
	}
	return pluginapi.Errorf(code, "worktree%s: %w", name, fault.Plain(err))
}

// planWorktree checks the worktree that the run will have, and has the run work there.
func (l *launch) planWorktree(ctx context.Context) (err error) {
	if l.spec.Worktree == nil {
		return nil
	}
	asked := l.spec.Worktree.Name
	name := cmp.Or(asked, l.spec.Agent+"-"+strings.ToLower(record.ShortID(l.spec.RunID)))
	if l.worktree, err = worktreesOf(l.h, l.world()).Plan(ctx, l.spec.Cwd, name); err != nil {
		return worktreeError(name, err)
	}
	l.spec.Worktree = &WorktreeSpec{Name: name, Made: asked == "", From: l.spec.Cwd, Notes: slices.Clone(l.worktree.Notes)}
	l.spec.Cwd, l.spec.Environ = l.worktree.Cwd, git.Elsewhere(l.world())
	return nil
}

// makeWorktree makes it. The run is recorded as the one that uses it.
func (l *launch) makeWorktree(ctx context.Context) error {
	if l.worktree == nil {
		return nil
	}
	return worktreeError(l.worktree.Name, l.worktree.Make(ctx, l.spec.RunID))
}
