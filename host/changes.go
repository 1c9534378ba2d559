package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/changes"
	"github.com/amux-dev/amux/internal/git"
	"github.com/amux-dev/amux/internal/place"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Changes are what a run changed in the git work tree that it worked in: see
// Workspace.Changes.
type Changes struct{ run *recorded }

// ChangesInfo is what is recorded of a run's changes.
type ChangesInfo struct {
	Root string `json:"root"` // of the work tree
	// Place, if not empty, is the other place where the work tree is.
	Place string `json:"place,omitempty"`
	// StartTree and EndTree are the ids of git trees; EndTree is empty while the run goes
	// on. Their objects are in the folder "changes" of the run, which is a git folder.
	StartTree string `json:"start_tree,omitempty"`
	EndTree   string `json:"end_tree,omitempty"`
	// Taken is when EndTree was taken. Late says that this was well after the run had
	// ended: what was changed in between is in it.
	Taken *time.Time `json:"taken,omitempty"`
	Late  bool       `json:"late,omitempty"`
	// Reason says why a tree is missing.
	Reason string `json:"reason,omitempty"`
	// LeftOut counts files that could not be read.
	LeftOut int `json:"left_out,omitempty"`
	// Files, Added and Deleted are how many files and lines the run changed.
	Files   int `json:"files"`
	Added   int `json:"added"`
	Deleted int `json:"deleted"`
}

// ChangedFile is a file that a run changed.
type ChangedFile struct {
	Path    string `json:"path"`               // relative to the work tree, with slashes
	OldPath string `json:"old_path,omitempty"` // of one that was renamed
	Status  string `json:"status"`             // added, deleted, modified, renamed, retyped
	// Added and Deleted are lines; both are 0 for a binary file.
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
	OldMode string `json:"old_mode"` // octal, as git has it; 000000: it did not exist
	NewMode string `json:"new_mode"`
	// Nested says that it is in a repository inside the work tree, such as a submodule.
	Nested bool `json:"nested,omitempty"`
}

// IsRepository reports whether it is a repository of its own, such as a submodule: its
// commit was changed.
func (f ChangedFile) IsRepository() bool { return f.OldMode == git.Gitlink || f.NewMode == git.Gitlink }

// lateAfter is how long after the end of a run its last tree is taken as that of the end.
const lateAfter = 10 * time.Second

// Changes are those of the run. It asks nobody.
func (r *Run) Changes() *Changes { return &Changes{r.recorded} }

// Info reads what is recorded. It returns nil where nothing is: outside a git work tree,
// where nobody asked for it, and if c is nil.
func (c *Changes) Info() *ChangesInfo {
	if c == nil {
		return nil
	}
	found, err := c.set().Record()
	if err != nil {
		return nil
	}
	info := &ChangesInfo{
		Root: found.Root, Place: found.Place, StartTree: found.StartTree, EndTree: found.EndTree, Taken: found.Taken, Reason: found.Reason,
		LeftOut: found.LeftOut, Files: found.Files, Added: found.Added, Deleted: found.Deleted,
	}
	if end, err := record.Read(c.run.dir); err == nil && end.Ended != nil && info.Taken != nil {
		info.Late = info.Taken.Sub(*end.Ended) > lateAfter
	}
	return info
}

func (c *Changes) set() *changes.Set { return changesOf(c.run.dir, c.run.h.opts.Env) }

func changesOf(dir *store.Run, env []string) *changes.Set { return changes.New(dir.Dir, env) }

// Diff compares the run's start with its end, or with the files as they are now while it
// goes on. Close it.
func (c *Changes) Diff(ctx context.Context) (*Diff, error) { return c.open(ctx, false) }

func (c *Changes) open(ctx context.Context, now bool) (*Diff, error) {
	d, err := c.set().Open(ctx, now, c.run.h.opts.TempDir)
	if errors.Is(err, changes.ErrElsewhere) && !now {
		if c.awaitEnd(ctx) {
			d, err = c.set().Open(ctx, now, c.run.h.opts.TempDir)
		}
		if errors.Is(err, changes.ErrElsewhere) {
			d, err = c.fetch(ctx)
		}
	}
	if err != nil {
		return nil, c.diffError(err)
	}
	return &Diff{c, d}, nil
}

// awaitEnd waits until the host of a run that has ended has taken what came from its place, or is
// gone. It reports whether the run has ended.
func (c *Changes) awaitEnd(ctx context.Context) bool {
	if end, err := record.Read(c.run.dir); err != nil || end.End == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	for c.run.dir.Held() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return true
		}
	}
	return true
}

// fetch opens what a run that goes on at another place has changed so far.
func (c *Changes) fetch(ctx context.Context) (*changes.Diff, error) {
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	at, err := place.ReadRecord(c.run.dir.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("what it changed has not been fetched")
	}
	if err != nil {
		return nil, err
	}
	at.Place = at.Place.Helped(filepath.Dir(c.run.h.opts.ShimPath)) // one of an older amux has no program
	dialer := PlacesOf(c.run.h).dialer()
	dialer.Known = at.Far
	client, err := dialer.Open(ctx, at.Place, c.run.id())
	if err != nil {
		return nil, (&away{place: at.Place}).unreachable(err)
	}
	defer client.Close()
	parcel, err := client.Changes(ctx, c.run.id())
	if err != nil {
		return nil, err
	}
	return changes.OpenParcel(ctx, parcel, at.Place.Name, c.run.h.opts.TempDir, c.run.h.opts.Env)
}

// Undo gives the files that the run changed the content they had at its start: all of them,
// or none if one of them was changed since. It returns the files.
func (c *Changes) Undo(ctx context.Context) ([]ChangedFile, error) {
	if info := c.Info(); info != nil && info.Place != "" {
		return nil, pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s: its files are at %s, and amux undoes what is on this machine", c.run.id(), info.Place).
			WithHint("see what it changed: amux diff %s", record.ShortID(c.run.id()))
	}
	if info := c.Info(); info != nil && info.StartTree != "" && info.EndTree == "" {
		if end, err := record.Read(c.run.dir); err == nil && end.End != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s: the files at its end were not recorded: %s", c.run.id(), cmp.Or(info.Reason, "amux was killed, or the disk was full")).
				WithHint("see what is different now: amux diff %s", record.ShortID(c.run.id()))
		}
		return nil, pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s has not ended", c.run.id()).
			WithHint("stop it first: amux stop %s", record.ShortID(c.run.id()))
	}
	d, err := c.open(ctx, true)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	files, err := d.diff.Undo(ctx)
	return changedFiles(files), c.diffError(err)
}

// diffError makes one of our errors of what went wrong with a diff.
func (c *Changes) diffError(err error) error {
	if err == nil {
		return nil
	}
	if c == nil {
		return pluginapi.Errorf(pluginapi.CodeInternal, "%w", err)
	}
	if _, told := errors.AsType[*pluginapi.Error](err); told {
		return err
	}
	id := record.ShortID(c.run.id())
	if refused, ok := errors.AsType[*changes.Refused](err); ok {
		msg := refused.Why
		if n := len(refused.Names); n > 0 {
			msg += ": " + strings.Join(refused.Names[:min(n, mostNames)], ", ")
			if n > mostNames {
				msg += fmt.Sprintf(" and %d more", n-mostNames)
			}
		}
		return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "%s", msg).WithHint("see what the run changed: amux diff %s", id)
	}
	if !errors.Is(err, changes.ErrNone) {
		return pluginapi.Errorf(pluginapi.CodeInternal, "changes of run %s: %w", id, err)
	}
	switch {
	case c.Info() != nil:
		return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s: %w", id, err)
	case !c.run.spec.Changes:
		return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s: its changes were not recorded", id).
			WithHint("amux records them where --no-changes and changes = false are not set")
	}
	why := c.run.meta.Cwd + " is in no git work tree"
	switch {
	case c.run.spec.NoRecord:
		why = "it keeps no record (--no-record)"
	case c.run.agent.GetDemo():
		why = "agent " + c.run.meta.Agent + " changes nothing"
	case c.run.spec.On != "":
		why = c.run.meta.Cwd + " at " + c.run.spec.On + " is in no git work tree, or the place was not asked"
	case git.InWorkTree(c.run.meta.Cwd):
		why = "amux was killed before the agent started, or the disk was full"
	}
	return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s: its changes were not recorded: %s", id, why)
}

// mostNames is how many files an error names.
const mostNames = 20

// Diff is what a run changed, or what differs in a worktree.
type Diff struct {
	changes *Changes // nil: of a worktree
	diff    *changes.Diff
}

// Close removes what was made for it.
func (d *Diff) Close() { d.diff.Close() }

// Root is the work tree.
func (d *Diff) Root() string { return d.diff.Root }

// Trees are the ids of the two git trees that are compared.
func (d *Diff) Trees() (start, end string) { return d.diff.StartTree, d.diff.Tree() }

// Files lists the changed files, sorted by path.
func (d *Diff) Files(ctx context.Context) ([]ChangedFile, error) {
	files, err := d.diff.Files(ctx)
	return changedFiles(files), d.changes.diffError(err)
}

// Patch writes the changes as git diff does. With whole they can be applied, binary files
// too.
func (d *Diff) Patch(ctx context.Context, w io.Writer, whole bool) error {
	return d.changes.diffError(d.diff.Patch(ctx, w, whole))
}

// Apply makes the same changes to the files in another folder: all of them, or none if one
// does not fit. Repositories inside the work tree, such as submodules, are left as they are.
func (d *Diff) Apply(ctx context.Context, dir string) error {
	return d.changes.diffError(d.diff.Apply(ctx, dir))
}

func changedFiles(files []git.File) []ChangedFile {
	list := make([]ChangedFile, len(files))
	for i, f := range files {
		list[i] = ChangedFile{f.Path, f.OldPath, f.Status, f.Added, f.Deleted, f.Binary, f.OldMode, f.NewMode, f.Nested}
	}
	return list
}

// baseline is the tree that a run starts from, while it is being taken.
type baseline struct {
	done   chan struct{}
	giveUp context.CancelFunc
}

// prepareFolder has the caller prepare the folder that the run starts in, and begins to take
// its tree, unless that has begun.
func (l *launch) prepareFolder(ctx context.Context) error {
	if l.spec.Prepare != nil {
		if err := l.spec.Prepare(ctx, infoOf(record.Info{Meta: l.meta, State: code.StateStarting}, l.spec, l.dir)); err != nil {
			return err
		}
	}
	if l.baseline == nil {
		l.takeBaseline(ctx)
	}
	return nil
}

// takeBaseline begins to take the tree that the run starts from. The agent is started when
// that is done: what it changes first must not be in it.
func (l *launch) takeBaseline(ctx context.Context) {
	if !l.spec.Changes || l.spec.NoRecord || l.agent.GetDemo() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &baseline{make(chan struct{}), cancel}
	l.baseline = b
	o := l.h.opts
	env := l.world()
	if l.away != nil {
		env = o.Env // of this machine, which has the folder
	}
	go func() {
		defer close(b.done)
		if l.away != nil && !l.away.place.WorksHere() {
			l.beginThere(ctx)
			return
		}
		changesOf(l.dir, env).Start(ctx, l.spec.Cwd, []string{o.ConfigDir, o.TempDir, o.RuntimeDir})
	}()
}

// wait waits until it was taken. A run without one has nothing to wait for.
func (b *baseline) wait() {
	if b != nil {
		<-b.done
		b.giveUp()
	}
}

// beginThere has the run's place take the tree. A run without one goes on.
func (l *launch) beginThere(ctx context.Context) {
	err := l.away.open(ctx, l.spec.RunID)
	var taken []byte
	if err == nil {
		taken, err = l.away.client.Begin(ctx, l.spec.RunID, l.spec.Cwd, l.world())
	}
	if err == nil && len(taken) > 0 {
		err = changesOf(l.dir, nil).StartElsewhere(l.away.place.Name, taken)
	}
	if err != nil {
		l.h.log.Named("place").Debug("the files of a run's start are not known", "run_id", l.spec.RunID, "error", err)
	}
}

// takeEnd takes the tree that the run has ended with. It is called as hosted.ended, once.
func (r *hosted) takeEnd() {
	if !r.spec.Changes || r.spec.NoRecord {
		return
	}
	env := r.spec.Environ
	if env == nil || r.spec.On != "" {
		env = r.h.opts.Env
	}
	set, ctx := changesOf(r.dir, env), context.Background() // each is bounded by itself
	defer os.Remove(r.dir.Path(shim.LeftName))
	if set.Expected() {
		r.takeSent(ctx, set)
		return
	}
	set.End(ctx)
}

// takeSent takes what the run's place has sent of the changes.
func (r *hosted) takeSent(ctx context.Context, set *changes.Set) {
	sent, err := os.Open(r.dir.Path(shim.LeftName))
	if err != nil {
		set.Missed(fmt.Errorf("what it changed was not fetched from %s", r.spec.On))
		return
	}
	defer sent.Close()
	_ = set.Receive(ctx, sent, r.spec.On) // the record has the error
}
