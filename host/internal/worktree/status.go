package worktree

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/git"
)

// Status is what a worktree holds.
type Status struct {
	Run     string      // that uses it; "" if it is free
	Head    string      // the commit it is at
	Tips    []string    // where its branch is, and Head
	Tree    string      // of its files as they are now
	Commits int         // that are on no other branch
	Changed git.Figures // since its base, committed or not
	Unsaved git.Figures // not committed
	// Strange is why it cannot be told what it holds: it is not removed then.
	Strange string
}

// Dirty reports whether something in it is nowhere else.
func (st *Status) Dirty() bool { return st.Strange != "" || st.Commits > 0 || st.Unsaved.Files > 0 }

// look finds out what a worktree holds. The folder temp is for git to work in, until the
// caller is done with the git that is returned; nil where there is no folder.
func (s *Store) look(ctx context.Context, r *Record, temp string) (st Status, g *git.Git, err error) {
	st.Run = s.User(r)
	w, err := s.within(ctx, r)
	if err != nil {
		st.Strange = err.Error()
		return st, nil, nil
	}
	branch, err := w.Commit(ctx, "refs/heads/"+Branch(r.Name))
	if err != nil {
		return st, nil, err
	}
	at := []string{branch}
	_, gone := os.Lstat(r.Path)
	if r.admin() != "" {
		if st.Head, err = w.Commit(ctx, "worktrees/"+r.Name+"/HEAD"); err != nil {
			return st, nil, err
		}
		at = append(at, st.Head)
	} else if gone == nil {
		st.Strange = "it is no worktree of " + r.Common + " any more"
		return st, nil, nil
	}
	at = slices.Compact(slices.DeleteFunc(at, func(id string) bool { return id == "" }))
	st.Tips = at
	if len(at) > 0 {
		args := append([]string{"rev-list", "--count", "--max-count=10000", "--single-worktree"}, at...)
		n, err := w.Run(ctx, append(args, "--not", r.Base, "--exclude=refs/heads/amux/*", "--all")...)
		if err != nil {
			return st, nil, err
		}
		if st.Commits, err = strconv.Atoi(n); err != nil {
			return st, nil, err
		}
	}
	if errors.Is(gone, os.ErrNotExist) {
		return st, nil, nil // nothing but the commits is left
	}
	if st.Head == "" {
		st.Strange = "its HEAD is no commit"
		return st, nil, nil
	}
	repo, err := git.Open(ctx, w.Path, r.Path, s.Env)
	if err == nil {
		err = sameFolder(repo.Common, r.Common)
	}
	if err != nil {
		st.Strange = git.OneLine(err.Error())
		return st, nil, nil
	}
	g, err = snapshot(ctx, s, r, repo, w.Path, temp, &st)
	return st, g, err
}

func sameFolder(a, b string) error {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !os.SameFile(one, two) {
		return errors.New("its .git names another repository")
	}
	return nil
}

// snapshot takes the tree of the files as they are now, and compares it.
func snapshot(ctx context.Context, s *Store, r *Record, repo *git.Repository, path, temp string, st *Status) (*git.Git, error) {
	if err := repo.Mirror(temp, nil); err != nil {
		return nil, err
	}
	g := &git.Git{Path: path, Env: s.Env, Dir: temp, Root: r.Path, Index: filepath.Join(temp, "index")}
	if err := unhide(ctx, g); err != nil {
		return nil, err
	}
	got, err := git.Tree{Git: g, Untracked: true}.Write(ctx)
	if err != nil {
		st.Strange = git.OneLine(err.Error())
		return g, nil
	}
	st.Tree = got.ID
	switch {
	case got.LeftOut > 0:
		st.Strange = strconv.Itoa(got.LeftOut) + " files in it cannot be read"
	case len(got.Nested) > 0:
		st.Strange = "it has a repository in it: " + git.OneLine(got.Nested[0])
	default:
		if entries, _ := os.ReadDir(filepath.Join(r.admin(), "modules")); len(entries) > 0 {
			st.Strange = "it has submodules that are checked out"
		}
	}
	for _, part := range []struct {
		from string
		to   *git.Figures
	}{{st.Head, &st.Unsaved}, {r.Base, &st.Changed}} {
		files, err := g.Files(ctx, part.from+"^{tree}", st.Tree)
		if err != nil {
			return g, err
		}
		*part.to = git.FiguresOf(files)
	}
	return g, nil
}

// unhide has git look at files that an agent has told it not to look at.
func unhide(ctx context.Context, g *git.Git) error {
	var out git.Limited
	if err := g.InTree(ctx, nil, &out, "ls-files", "-z", "-v"); err != nil {
		return nil // an index that cannot be used: Write does without it
	}
	var assumed, skipped git.Paths
	for entry := range strings.SplitSeq(string(out.Data), "\x00") {
		if len(entry) < 3 {
			continue
		}
		tag, name := entry[0], entry[2:]
		if tag >= 'a' && tag <= 'z' {
			assumed = append(assumed, name)
		}
		if tag == 'S' || tag == 's' {
			if _, err := os.Lstat(filepath.Join(g.Root, filepath.FromSlash(name))); err == nil {
				skipped = append(skipped, name)
			}
		}
	}
	for flag, names := range map[string]git.Paths{"--no-assume-unchanged": assumed, "--no-skip-worktree": skipped} {
		if len(names) == 0 {
			continue
		}
		if err := g.InTree(ctx, names.List(), io.Discard, "update-index", flag, "-z", "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// Status finds out what a worktree holds.
func (s *Store) Status(ctx context.Context, r *Record) (Status, error) {
	st, _, done, err := s.open(ctx, r)
	done()
	return st, err
}

// Diff returns git with the base of a worktree and the tree of its files as they are now,
// until done is called.
func (s *Store) Diff(ctx context.Context, r *Record) (g *git.Git, from, to string, done func(), err error) {
	st, g, done, err := s.open(ctx, r)
	if err == nil && st.Tree == "" {
		err = refuse("see: amux worktree list", "worktree %s cannot be read: %s", r.Name, cmp.Or(st.Strange, "its folder is gone"))
	}
	return g, r.Base + "^{tree}", st.Tree, done, err
}

func (s *Store) open(ctx context.Context, r *Record) (st Status, g *git.Git, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	temp, err := os.MkdirTemp(s.Temp, tempName)
	if err != nil {
		return st, nil, func() {}, err
	}
	st, g, err = s.look(ctx, r, temp)
	return st, g, func() { _ = os.RemoveAll(temp) }, err
}
