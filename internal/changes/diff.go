package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amux-dev/amux/internal/git"
)

// Diff is two trees of a run that can be compared: that of its start with that of its end,
// or with the files as they are now. Close it.
type Diff struct {
	Record
	git  *git.Git
	to   string // the later tree
	temp string // what is left of a look at the files as they are now; "" for none
	// closed is what else Close does.
	closed func()
	// inner are the repositories inside the work tree whose files differ, prefix is where
	// one of them lies.
	inner  []*Diff
	prefix string
}

// ErrNone is inside the error where nothing was recorded.
var ErrNone = errors.New("no changes were recorded")

// Open opens what a run changed. Without a tree of the end, or with now, the files as they
// are now take its place, for which temp is a folder to work in.
func (s *Set) Open(ctx context.Context, now bool, temp string) (*Diff, error) {
	r, err := s.Record()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	if r.StartTree == "" {
		return nil, fmt.Errorf("%w: %s", ErrNone, r.Reason)
	}
	if r.Place != "" && (now || r.EndTree == "") {
		return nil, ErrElsewhere
	}
	g, err := s.open(r.Root)
	if err != nil {
		return nil, err
	}
	d := &Diff{Record: r, git: g, to: r.EndTree}
	if d.to != "" && !now {
		d.openNested(ctx, s, now, temp)
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	if err := s.look(ctx, d, temp); err != nil {
		d.Close()
		return nil, err
	}
	d.openNested(ctx, s, true, temp)
	return d, nil
}

// Between is the difference of two trees that git has the objects of. closed, if not nil,
// is called by Close.
func Between(g *git.Git, from, to string, closed func()) *Diff {
	return &Diff{Record: Record{Root: g.Root, StartTree: from}, git: g, to: to, closed: closed}
}

// look takes the tree of the files as they are now, into a folder of its own.
func (s *Set) look(ctx context.Context, d *Diff, temp string) (err error) {
	if d.temp, err = os.MkdirTemp(temp, "agent-mux-replay-"); err != nil {
		return err
	}
	objects := filepath.Join(d.temp, "objects")
	if err := os.MkdirAll(filepath.Join(objects, "info"), 0o700); err != nil {
		return err
	}
	kept := git.Quote(filepath.ToSlash(filepath.Join(s.dir, "objects"))) + "\n"
	if err := os.WriteFile(filepath.Join(objects, "info", "alternates"), []byte(kept), 0o600); err != nil {
		return err
	}
	d.git.Index, d.git.Objects = filepath.Join(d.temp, "index"), objects
	if err := git.CopyIndex(filepath.Join(s.dir, "index"), d.git.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	got, err := git.Tree{Git: d.git, Untracked: s.untracked()}.Write(ctx)
	d.to = got.ID
	return err
}

// Close removes what Open has made.
func (d *Diff) Close() {
	for _, in := range d.inner {
		in.Close()
	}
	if d.temp != "" {
		_ = os.RemoveAll(d.temp)
	}
	if d.closed != nil {
		d.closed()
	}
}

// Tree is the id of the later tree.
func (d *Diff) Tree() string { return d.to }

// Files lists the files that differ.
func (d *Diff) Files(ctx context.Context) ([]git.File, error) {
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	files, err := d.git.Files(ctx, d.StartTree, d.to)
	for _, in := range d.inner {
		if err != nil {
			return nil, err
		}
		var more []git.File
		more, err = in.Files(ctx)
		for _, f := range more {
			f.Path = in.prefix + f.Path
			if f.OldPath != "" {
				f.OldPath = in.prefix + f.OldPath
			}
			f.Nested = true
			files = append(files, f)
		}
	}
	return files, err
}

// Patch writes the differences as git does. With whole, it can be applied also to binary
// files, and to nothing but the same files.
func (d *Diff) Patch(ctx context.Context, w io.Writer, whole bool) error {
	err := d.patch(ctx, w, d.StartTree, d.to, whole)
	for _, in := range d.inner {
		if err == nil {
			err = in.patch(ctx, w, in.StartTree, in.to, whole)
		}
	}
	return err
}

func (d *Diff) patch(ctx context.Context, w io.Writer, from, to string, whole bool, more ...string) error {
	args := []string{"diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv",
		"--src-prefix=a/" + d.prefix, "--dst-prefix=b/" + d.prefix}
	if whole {
		args = append(args, "--binary", "--full-index", "--no-renames")
	} else {
		args = append(args, "--find-renames")
	}
	return d.git.OnObjects(ctx, nil, w, append(append(args, more...), from, to)...)
}

// Refused says why nothing was done, and for which files.
type Refused struct {
	Why   string
	Names []string
}

func (r *Refused) Error() string { return r.Why }

// Apply makes the same changes in another folder, all of them or none. Repositories in
// the tree are left as they are.
func (d *Diff) Apply(ctx context.Context, dir string) error {
	return d.apply(ctx, dir, d.StartTree, d.to)
}

// apply makes the changes between two trees in a folder.
func (d *Diff) apply(ctx context.Context, dir, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	patch, err := os.CreateTemp(d.temp, "agent-mux-replay-*.patch")
	if err != nil {
		return err
	}
	defer os.Remove(patch.Name())
	err = d.patch(ctx, patch, from, to, true, "--ignore-submodules=all")
	info, statErr := patch.Stat()
	if err := errors.Join(err, statErr, patch.Close()); err != nil || info.Size() == 0 {
		return err
	}
	there := *d.git
	there.Root = dir
	err = there.InTree(ctx, nil, io.Discard, "apply", "--whitespace=nowarn", patch.Name())
	if failed, ok := errors.AsType[*git.Failure](err); ok {
		return &Refused{Why: "the changes do not fit the files there: " + strings.TrimPrefix(failed.Stderr, "error: ")}
	}
	return err
}

// Undo gives the files that the run changed the content that they had at its start, all of
// them or, if one of them was changed since, none. d must be opened with now: what it
// compares is the end of the run and now.
func (d *Diff) Undo(ctx context.Context) ([]git.File, error) {
	changed, err := d.git.Files(ctx, d.StartTree, d.EndTree, "--no-renames")
	if err != nil {
		return nil, err
	}
	since, err := d.git.Files(ctx, d.EndTree, d.to, "--no-renames")
	if err != nil {
		return nil, err
	}
	if names := touching(since, changed); len(names) > 0 {
		return nil, &Refused{"these files were changed after the run", names}
	}
	var repositories []string
	for _, in := range d.inner {
		if inside, err := in.git.Files(ctx, in.StartTree, cmp.Or(in.EndTree, in.to)); err != nil {
			return nil, err
		} else if len(inside) > 0 {
			repositories = append(repositories, strings.TrimSuffix(in.prefix, "/"))
		}
	}
	for _, f := range changed {
		if f.IsRepository() {
			repositories = append(repositories, f.Path)
		}
	}
	slices.Sort(repositories)
	if repositories = slices.Compact(repositories); len(repositories) > 0 {
		return nil, &Refused{"these are repositories of their own, which amux does not change", repositories}
	}
	filtered, err := d.git.Filtered(ctx, changed)
	if err != nil {
		return nil, err
	}
	if len(filtered) > 0 {
		return nil, &Refused{"git stores these files by a filter (as Git LFS does), which amux does not start", filtered}
	}
	if err := d.apply(ctx, d.Root, d.EndTree, d.StartTree); err != nil {
		return nil, err
	}
	return changed, d.undone(ctx, changed)
}

// undone checks that files are as they were at the start.
func (d *Diff) undone(ctx context.Context, changed []git.File) error {
	_, err := os.Lstat(filepath.Join(d.git.Dir, git.UntrackedFile))
	now, err := git.Tree{Git: d.git, Untracked: errors.Is(err, fs.ErrNotExist)}.Write(ctx)
	if err != nil {
		return err
	}
	left, err := d.git.Files(ctx, d.StartTree, now.ID, "--no-renames")
	if err != nil {
		return err
	}
	if names := touching(left, changed); len(names) > 0 {
		return &Refused{"these files could not be given their old content", names}
	}
	return nil
}

// touching are the paths in since that are one of changed, or above or below one.
func touching(since, changed []git.File) []string {
	if len(changed) == 0 {
		return nil
	}
	own, above := map[string]bool{}, map[string]bool{}
	for _, f := range changed {
		own[f.Path] = true
		for i := range len(f.Path) {
			if f.Path[i] == '/' {
				above[f.Path[:i]] = true
			}
		}
	}
	var names []string
	for _, f := range since {
		hit := own[f.Path] || above[f.Path]
		for i := 0; i < len(f.Path) && !hit; i++ {
			hit = f.Path[i] == '/' && own[f.Path[:i]]
		}
		if hit {
			names = append(names, f.Path)
		}
	}
	return names
}
