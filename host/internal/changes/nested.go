package changes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A submodule, or another repository inside the work tree, is in the tree as a commit. What
// is changed inside it and not committed shows in trees of its own, which a Set below that
// of the work tree has.

// startNested takes the trees that the repositories inside the work tree start from: the
// untracked ones that are given, and submodules. What goes wrong is in their own records.
func (s *Set) startNested(ctx context.Context, g *git, untracked []string) {
	list := untracked
	if _, err := os.Lstat(filepath.Join(g.root, ".gitmodules")); err == nil {
		list = append(list, g.submodules(ctx)...)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	linked := links{root: g.root}
	for i, name := range list[:min(len(list), mostNested)] {
		dir := filepath.Join(g.root, filepath.FromSlash(name))
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || linked.above(name) {
			continue
		}
		if root, ok := findRoot(dir); ok && root == dir { // else it is not checked out
			s.inner(i).Start(ctx, dir, nil)
		}
	}
}

// submodules are the repositories in the index.
func (g *git) submodules(ctx context.Context) (list []string) {
	var out limited
	if g.inTree(ctx, nil, &out, "ls-files", "-z", "--stage") != nil {
		return nil
	}
	for entry := range strings.SplitSeq(string(out.data), "\x00") { // mode, id, stage TAB path
		if head, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(head, gitlink+" ") {
			list = append(list, name)
		}
	}
	return list
}

// inner is the Set of the repository of that number.
func (s *Set) inner(i int) *Set {
	return &Set{dir: filepath.Join(s.dir, "nested", strconv.Itoa(i)), deep: true, env: s.env, time: s.time}
}

// nested are the Sets of repositories inside the work tree.
func (s *Set) nested() (sets []*Set) {
	for i := range mostNested {
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
