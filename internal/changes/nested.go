package changes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/amux-dev/amux/internal/git"
)

// A submodule, or another repository inside the work tree, is in the tree as a commit. What
// is changed inside it and not committed shows in trees of its own, which a Set below that
// of the work tree has.

// startNested takes the trees that the repositories inside the work tree start from: the
// untracked ones that are given, and submodules. What goes wrong is in their own records.
func (s *Set) startNested(ctx context.Context, g *git.Git, untracked []string) {
	list := untracked
	if _, err := os.Lstat(filepath.Join(g.Root, ".gitmodules")); err == nil {
		list = append(list, g.Submodules(ctx)...)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	linked := git.Links{Root: g.Root}
	for i, name := range list[:min(len(list), git.MostNested)] {
		dir := filepath.Join(g.Root, filepath.FromSlash(name))
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || linked.Above(name) {
			continue
		}
		if root, ok := git.FindRoot(dir); ok && root == dir { // else it is not checked out
			s.inner(i).Start(ctx, dir, nil)
		}
	}
}

// inner is the Set of the repository of that number.
func (s *Set) inner(i int) *Set {
	return &Set{dir: filepath.Join(s.dir, "nested", strconv.Itoa(i)), deep: true, env: s.env, time: s.time}
}

// nested are the Sets of repositories inside the work tree.
func (s *Set) nested() (sets []*Set) {
	for i := range git.MostNested {
		inner := s.inner(i)
		if _, err := os.Lstat(inner.dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		sets = append(sets, inner)
	}
	return sets
}

// openNested opens the repositories inside the work tree whose files changed.
func (d *Diff) openNested(ctx context.Context, s *Set, now bool, temp string) {
	for _, inner := range s.nested() {
		if r, err := inner.Record(); err != nil || r.EndTree == "" && !now {
			continue
		}
		in, err := inner.Open(ctx, now, temp)
		if err != nil {
			continue // nothing was recorded of it
		}
		rel, err := filepath.Rel(d.Root, in.Root)
		if err != nil || in.StartTree == in.to {
			in.Close()
			continue
		}
		in.prefix = filepath.ToSlash(rel) + "/"
		d.inner = append(d.inner, in)
	}
}
