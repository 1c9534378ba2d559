package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/git"
)

// Merge brings what a worktree holds, committed there or not, into the files of the work
// tree that it was made from. It merges as git does, from where the two parted, and changes
// files alone: neither the index nor a branch. Where that work tree has changes of its own,
// or both changed the same lines, nothing is changed. It returns the files that were.
func (s *Store) Merge(ctx context.Context, name string) ([]git.File, *Record, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	r, err := s.Read(name)
	if err == nil {
		err = s.finishLocked(ctx, r)
	}
	if err == nil {
		r, err = s.Read(name)
	}
	if err != nil {
		return nil, nil, err
	}
	// A folder of its own, which a merge that is cut off is taken back with.
	dir := s.mergeDir(r)
	if _, err := os.Lstat(dir); err == nil {
		s.keepMerged(r) // amux was killed before it could
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, r, err
	}
	last := r.Merged
	defer func() {
		switch {
		case r.Merging != nil:
		case r.Merged != last:
			s.keepMerged(r)
		default:
			_ = os.RemoveAll(dir)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	st, _, err := s.look(ctx, r, dir)
	switch {
	case err != nil:
		return nil, r, err
	case st.Run != "":
		return nil, r, inUse(r, st.Run)
	case st.Tree == "" || st.Strange != "":
		return nil, r, refuse("look into "+r.Path, "worktree %s cannot be merged: %s", name, st.Strange)
	}
	files, err := s.merge(ctx, r, st)
	return files, r, err
}

func inUse(r *Record, run string) error {
	short := run[max(0, len(run)-6):]
	return refuse("wait for it: amux wait "+short, "worktree %s is in use by run %s", r.Name, short)
}

func (s *Store) mergeDir(r *Record) string { return filepath.Join(s.state(), r.Name+".git") }

// keptDir has the objects of the last merge that was done, from which the next one goes on.
func (s *Store) keptDir(r *Record) string { return filepath.Join(s.state(), r.Name+".merged") }

func (s *Store) keepMerged(r *Record) {
	_ = os.RemoveAll(s.keptDir(r))
	if r.Merged == nil || os.Rename(s.mergeDir(r), s.keptDir(r)) != nil {
		_ = os.RemoveAll(s.mergeDir(r)) // the next merge does without it
	}
}

// merge merges the tree of a status, whose objects are in the folder of the merge.
func (s *Store) merge(ctx context.Context, r *Record, st Status) ([]git.File, error) {
	t, at, err := s.target(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := t.clean(ctx, at); err != nil {
		return nil, err
	}
	tree, err := t.merge(ctx, at, st, r)
	if err != nil {
		return nil, err
	}
	files, err := t.Files(ctx, at+"^{tree}", tree, "--no-renames")
	if err != nil || len(files) == 0 {
		return nil, err
	}
	if err := t.fits(ctx, files, r); err != nil {
		return nil, err
	}
	r.Merging = &Merged{Root: r.Root, Head: at, Tree: tree, From: st.Tree, Tip: st.Head, Time: time.Now().UTC()}
	if err := s.write(r); err != nil {
		return nil, err
	}
	if err := t.put(ctx, tree, files, func(f git.File) string { return f.NewMode }); err != nil {
		return nil, errors.Join(err, s.takeBack(context.WithoutCancel(ctx), r))
	}
	r.Merging, r.Merged = nil, r.Merging
	return files, s.write(r)
}

// target is git for the user's work tree, in a folder that has the objects of the worktree's
// files too.
type target struct{ *git.Git }

func targetAt(s *Store, r *Record, path, root string) *target {
	dir := filepath.Join(s.mergeDir(r), "target")
	return &target{&git.Git{Path: path, Env: s.Env, Dir: dir, Root: root, Index: filepath.Join(dir, "index")}}
}

// target opens the user's work tree. It returns the commit that it is at.
func (s *Store) target(ctx context.Context, r *Record) (*target, string, error) {
	w, err := s.within(ctx, r)
	if err != nil {
		return nil, "", err
	}
	repo, err := git.Open(ctx, w.Path, r.Root, s.Env)
	if err == nil {
		err = sameFolder(repo.Common, r.Common)
	}
	if err != nil {
		return nil, "", refuse("merge it by hand: git merge "+Branch(r.Name), "the work tree %s cannot be used: %s", r.Root, git.OneLine(err.Error()))
	}
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "index.lock"} {
		if _, err := os.Lstat(filepath.Join(repo.GitDir, name)); err == nil {
			return nil, "", refuse("finish it; see: git status", "git is at work in %s (%s)", r.Root, name)
		}
	}
	at, err := w.Commit(ctx, head(repo))
	if err != nil {
		return nil, "", err
	}
	t := targetAt(s, r, w.Path, r.Root)
	if err := os.Mkdir(t.Dir, 0o700); err != nil {
		return nil, "", err
	}
	if err := repo.Mirror(t.Dir, nil); err != nil {
		return nil, "", err
	}
	alternates := filepath.Join(t.Dir, "objects", "info", "alternates")
	data, err := os.ReadFile(alternates)
	if err != nil {
		return nil, "", err
	}
	for _, dir := range []string{s.mergeDir(r), s.keptDir(r), filepath.Join(s.keptDir(r), "target")} {
		if objects := filepath.Join(dir, "objects"); exists(objects) {
			data = append(data, git.Quote(filepath.ToSlash(objects))+"\n"...)
		}
	}
	return t, at, os.WriteFile(alternates, data, 0o600)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// clean refuses a work tree that has changes that are not committed, staged or not. Files
// that git does not know do not count.
func (t *target) clean(ctx context.Context, at string) error {
	if err := unhide(ctx, t.Git); err != nil {
		return err
	}
	var staged, changed git.Limited
	err := t.InTree(ctx, nil, &staged, "diff-index", "--cached", "--name-only", "-z", at)
	if err == nil {
		err = t.InTree(ctx, nil, &changed, "ls-files", "-z", "--modified", "--deleted")
	}
	if err != nil {
		return err
	}
	if names := strings.Split(string(staged.Data)+string(changed.Data), "\x00"); names[0] != "" {
		return refuse("commit or stash them first; see: git status", "%s has changes that are not committed: %s", t.Root, some(names[:len(names)-1]))
	}
	return nil
}

// some names some files.
func some(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	text := strings.Join(names[:min(5, len(names))], ", ")
	if len(names) > 5 {
		text += ", …"
	}
	return git.OneLine(text)
}

// merge returns the tree of a commit and the worktree's files, merged.
func (t *target) merge(ctx context.Context, at string, st Status, r *Record) (string, error) {
	ours, parent := at, st.Head
	var err error
	if t.kept(ctx, at, r.Merged) {
		// The user has committed what was merged last: only what came since is merged.
		if parent, err = t.commit(ctx, r.Merged.From); err == nil {
			ours, err = t.commit(ctx, at+"^{tree}", "-p", parent)
		}
		if err != nil {
			return "", err
		}
	}
	theirs, err := t.commit(ctx, st.Tree, "-p", parent)
	if err != nil {
		return "", err
	}
	out, err := git.Output(func(w io.Writer) error {
		return t.OnObjects(ctx, nil, w, "merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs)
	})
	names := strings.Split(strings.TrimRight(out, "\x00"), "\x00")
	failed, _ := errors.AsType[*git.Failure](err)
	switch {
	case failed != nil && failed.Exit == 1 && len(names) > 1:
		return "", refuse("merge by hand: git -C "+r.Path+" commit -a, then git merge "+Branch(r.Name), "both changed these files: %s; nothing was merged", some(names[1:]))
	case failed != nil && failed.Exit == 129:
		return "", refuse("merge it by hand: git merge "+Branch(r.Name), "git 2.38 or later is needed to merge")
	case err != nil:
		return "", err
	case !git.IsID(names[0]):
		return "", errors.New("git merge-tree printed no id")
	}
	return names[0], nil
}

// commit makes a commit of a tree, which git needs to merge it.
func (t *target) commit(ctx context.Context, tree string, parents ...string) (string, error) {
	return git.Output(func(w io.Writer) error {
		return t.OnObjects(ctx, strings.NewReader("files of a worktree\n"), w,
			append([]string{"-c", "user.name=amux", "-c", "user.email=amux@localhost", "commit-tree", tree}, parents...)...)
	})
}

// kept reports whether a later commit of the user has all that a merge changed, in whatever
// form: none of the files is as it was before that merge.
func (t *target) kept(ctx context.Context, at string, m *Merged) bool {
	if m == nil || m.Head == at || t.OnObjects(ctx, nil, io.Discard, "cat-file", "-e", m.From) != nil {
		return false
	}
	merged, err := t.Files(ctx, m.Head+"^{tree}", m.Tree, "--no-renames")
	if err != nil {
		return false
	}
	since, err := t.Files(ctx, m.Head+"^{tree}", at+"^{tree}", "--no-renames")
	if err != nil {
		return false
	}
	committed := map[string]bool{}
	for _, f := range since {
		committed[f.Path] = true
	}
	return !slices.ContainsFunc(merged, func(f git.File) bool { return !committed[f.Path] })
}

// fits refuses files that cannot be written, or for which something is in the way.
func (t *target) fits(ctx context.Context, files []git.File, r *Record) error {
	hint := "merge it by hand: git merge " + Branch(r.Name)
	tracked := map[string]bool{}
	for _, f := range files {
		tracked[f.Path] = f.OldMode != absent
		if f.IsRepository() {
			return refuse(hint, "%s is a repository of its own, which amux does not change", git.OneLine(f.Path))
		}
	}
	filtered, err := t.Filtered(ctx, files)
	if err != nil {
		return err
	}
	if len(filtered) > 0 {
		return refuse(hint, "git stores these files by a filter (as Git LFS does), which amux does not start: %s", some(filtered))
	}
	for _, f := range files {
		for path := f.Path; path != "." && !tracked[f.Path]; path = pathDir(path) {
			info, err := os.Lstat(filepath.Join(t.Root, filepath.FromSlash(path)))
			if err == nil && (path == f.Path || !info.IsDir()) && !tracked[path] {
				return refuse("move it away", "%s is in the way: git does not know it, and the worktree has a file of that name", filepath.Join(t.Root, filepath.FromSlash(path)))
			}
		}
	}
	return nil
}

// absent is the mode of a file that does not exist.
const absent = "000000"

func pathDir(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// put gives files the content and mode that they have in a tree.
func (t *target) put(ctx context.Context, tree string, files []git.File, mode func(git.File) string) error {
	t.Index = filepath.Join(t.Dir, "index-"+tree)
	if err := t.InTree(ctx, nil, io.Discard, "read-tree", tree); err != nil {
		return err
	}
	var write git.Paths
	linked := git.Links{Root: t.Root}
	for _, f := range files {
		if mode(f) != absent {
			write = append(write, f.Path)
			continue
		}
		if linked.Above(f.Path) {
			continue // it is gone, and what is there is elsewhere
		}
		path := filepath.Join(t.Root, filepath.FromSlash(f.Path))
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		for dir := filepath.Dir(path); dir != t.Root && os.Remove(dir) == nil; dir = filepath.Dir(dir) { // as git does
			continue
		}
	}
	if len(write) == 0 {
		return nil
	}
	return t.InTree(ctx, write.List(), io.Discard, "checkout-index", "-f", "-z", "--stdin")
}

// takeBack gives the files that a merge began to change the content they had, if nobody
// has changed them since.
func (s *Store) takeBack(ctx context.Context, r *Record) error {
	m := r.Merging
	path, err := gitPath(s.Env, m.Root)
	if err != nil {
		return err
	}
	t := targetAt(s, r, path, m.Root)
	files, err := t.Files(ctx, m.Head+"^{tree}", m.Tree, "--no-renames")
	if err != nil {
		return err
	}
	strange, err := t.strange(ctx, m, files)
	if err == nil && len(strange) == 0 {
		err = t.put(ctx, m.Head, files, func(f git.File) string { return f.OldMode })
	}
	if err != nil {
		return err
	}
	r.Merging = nil
	if err := s.write(r); err != nil {
		return err
	}
	_ = os.RemoveAll(s.mergeDir(r))
	if len(strange) > 0 {
		return refuse("see: git -C "+m.Root+" status", "the merge of worktree %s was cut off, and these files were changed since: %s", r.Name, some(strange))
	}
	return nil
}

// strange are files that are neither as they were before a merge nor as it makes them, nor
// on the way.
func (t *target) strange(ctx context.Context, m *Merged, files []git.File) ([]string, error) {
	t.Index = filepath.Join(t.Dir, "index-now")
	if err := t.InTree(ctx, nil, io.Discard, "read-tree", m.Head); err != nil {
		return nil, err
	}
	list := make(git.Paths, len(files))
	for i, f := range files {
		list[i] = f.Path
	}
	if err := t.InTree(ctx, list.List(), io.Discard, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		return list, nil // something else is there
	}
	now, err := git.Output(func(w io.Writer) error { return t.InTree(ctx, nil, w, "write-tree", "--missing-ok") })
	if err != nil {
		return nil, err
	}
	since, err := t.Files(ctx, m.Head+"^{tree}", now, "--no-renames")
	if err != nil {
		return nil, err
	}
	is := map[string]string{}
	for _, f := range since {
		is[f.Path] = f.NewID
	}
	var names []string
	for _, f := range files {
		id, differs := is[f.Path]
		if differs && id != f.NewID && strings.Trim(id, "0") != "" && !t.begun(ctx, f) {
			names = append(names, f.Path)
		}
	}
	return names, nil
}

// begun reports whether a file is the beginning of what it becomes: git was killed while it
// wrote it.
func (t *target) begun(ctx context.Context, f git.File) bool {
	if f.NewMode == absent {
		return false
	}
	is, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(f.Path)))
	var becomes git.Limited
	return err == nil && t.OnObjects(ctx, nil, &becomes, "cat-file", "blob", f.NewID) == nil && bytes.HasPrefix(becomes.Data, is)
}
