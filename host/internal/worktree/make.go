package worktree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/git"
)

// makeTime bounds the check-out of a worktree.
const makeTime = 10 * time.Minute

// Plan is a worktree that a run will have.
type Plan struct {
	Name string
	Cwd  string // where the run works: the folder in the worktree that stands for the user's
	// Notes say what the worktree has not that the user's work tree has.
	Notes []string

	store *Store
	git   string // the program
	repo  *git.Repository
	sub   string // of the folder in the work tree
	base  string
	run   string
	fresh bool // it was made for this run
}

// Plan checks all that can be wrong with a worktree for a folder, and makes nothing.
func (s *Store) Plan(ctx context.Context, cwd, name string) (*Plan, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	root, ok := git.FindRoot(cwd)
	if !ok {
		return nil, refuse("work in a repository that has a work tree, or leave out --worktree", "%s is in no git work tree", cwd)
	}
	p := &Plan{Name: name, store: s}
	var err error
	if p.git, err = gitPath(s.Env, root); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, git.UserTime)
	defer cancel()
	if p.repo, err = git.Open(ctx, p.git, root, s.Env); err != nil {
		return nil, refuse("see: git -C "+root+" status", "%s: %v", root, err)
	}
	if p.repo.Common, err = filepath.EvalSymlinks(p.repo.Common); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return nil, err
	}
	if p.sub, err = filepath.Rel(root, real); err != nil || !filepath.IsLocal(p.sub) {
		return nil, refuse("", "%s is not in %s", cwd, root)
	}
	p.Cwd = filepath.Join(s.path(name), p.sub)
	w, err := git.NewWithin(ctx, p.git, p.repo.Common, s.Env)
	if err != nil {
		return nil, err
	}
	old, err := s.Read(name)
	if err == nil {
		return p, s.reusable(old, p.repo)
	}
	if _, none := errors.AsType[*Refused](err); !none {
		return nil, err
	}
	if p.base, err = w.Commit(ctx, head(p.repo)); err != nil {
		return nil, err
	}
	if p.base == "" {
		return nil, refuse("commit something first: git commit", "the repository %s has no commit yet", root)
	}
	if _, err := w.Run(ctx, "cat-file", "-e", p.base+":.gitmodules"); err == nil {
		p.Notes = append(p.Notes, "submodules are not checked out in the worktree: git submodule update --init")
	}
	if text, err := w.Run(ctx, "cat-file", "blob", p.base+":.gitattributes"); err == nil && strings.Contains(text, "filter=") {
		p.Notes = append(p.Notes, "files that a filter makes (as Git LFS does) are in the worktree as git stores them: amux starts no filter")
	}
	if p.sub != "." {
		if kind, err := w.Run(ctx, "cat-file", "-t", p.base+":"+filepath.ToSlash(p.sub)); err != nil || kind != "tree" {
			return nil, refuse("commit it, or start the run in another folder", "%s is not in the last commit, of which the worktree is made", cwd)
		}
	}
	return p, p.free(ctx, w)
}

// head names the commit that a work tree is at.
func head(r *git.Repository) string {
	if id := filepath.Base(r.GitDir); filepath.Base(filepath.Dir(r.GitDir)) == "worktrees" {
		return "worktrees/" + id + "/HEAD"
	}
	return "HEAD"
}

// reusable refuses a worktree of another repository, and one that a run uses.
func (s *Store) reusable(r *Record, repo *git.Repository) error {
	if r.State == ready && r.Common != repo.Common {
		return refuse("choose another name", "worktree %s is of another repository: %s", r.Name, r.Root)
	}
	if run := s.User(r); run != "" {
		return refuse("wait for it (amux wait "+run[len(run)-6:]+"), or choose another name", "worktree %s is in use by run %s", r.Name, run[len(run)-6:])
	}
	if _, err := os.Stat(r.Path); r.State == ready && err != nil {
		return refuse("amux worktree drop "+r.Name, "the folder of worktree %s is gone: %s", r.Name, r.Path)
	}
	return nil
}

// free refuses a name that the repository uses for something else.
func (p *Plan) free(ctx context.Context, w *git.Within) error {
	at, err := w.Commit(ctx, "refs/heads/"+Branch(p.Name))
	if err != nil {
		return err
	}
	if at != "" {
		return refuse("choose another name; or remove it: git branch -D "+Branch(p.Name), "the repository has a branch %s that is of no worktree of amux", Branch(p.Name))
	}
	if at, err = w.Commit(ctx, "refs/heads/amux"); err != nil {
		return err
	}
	if at != "" {
		return refuse("rename it: git branch -m amux another-name", "the repository has a branch amux, beside which git can have no branch %s", Branch(p.Name))
	}
	for _, path := range []string{filepath.Join(p.repo.Common, "worktrees", p.Name), p.store.path(p.Name)} {
		if _, err := os.Lstat(path); err == nil {
			return refuse("choose another name", "a worktree %s is there already: %s", p.Name, path)
		}
	}
	return nil
}

// Make makes the worktree, or takes the one of that name, for a run that is marked as not
// ended: from here on it has the lease.
func (p *Plan) Make(ctx context.Context, run string) error {
	p.run = run
	if err := p.claim(ctx); err != nil || !p.fresh {
		return err
	}
	r, err := p.store.Read(p.Name)
	if err == nil {
		err = p.checkOut(ctx, r)
	}
	if err != nil {
		return err
	}
	unlock, err := p.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r.State = ready
	return p.store.write(r)
}

// claim records the run, and makes branch and entry of a new worktree.
func (p *Plan) claim(ctx context.Context) error {
	s := p.store
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.Read(p.Name)
	if err == nil {
		if err := s.finishLocked(ctx, r); err != nil {
			return err
		}
		r, err = s.Read(p.Name)
	}
	if err == nil {
		if err := s.reusable(r, p.repo); err != nil {
			return err
		}
		r.Runs = append(slices.DeleteFunc(r.Runs, func(run string) bool { return run == p.run }), p.run)
		return s.write(r)
	}
	if _, none := errors.AsType[*Refused](err); !none {
		return err
	}
	if p.base == "" {
		return refuse("start the run again", "worktree %s was dropped meanwhile", p.Name)
	}
	w, err := git.NewWithin(ctx, p.git, p.repo.Common, s.Env)
	if err != nil {
		return err
	}
	if err := p.free(ctx, w); err != nil {
		return err
	}
	r = &Record{
		Name: p.Name, State: making, Path: s.path(p.Name), Root: p.repo.Root, Common: p.repo.Common, Base: p.base,
		Runs: []string{p.run}, Created: time.Now().UTC(),
	}
	p.fresh = true
	if err := s.write(r); err != nil {
		return err
	}
	if err := w.MakeBranch(ctx, Branch(p.Name), p.base); err != nil {
		return err
	}
	if _, err := w.Run(ctx, "worktree", "add", "--quiet", "--no-checkout", "--lock", r.Path, Branch(p.Name)); err != nil {
		return err
	}
	dir := r.admin()
	if dir == "" {
		return errors.New("git worktree add made no entry for " + r.Path)
	}
	return os.WriteFile(filepath.Join(dir, "locked"), []byte("it is kept by amux: amux worktree drop "+p.Name+"\n"), 0o644)
}

// checkOut writes the files. No program of the repository takes part: what git stores by a
// filter stays as it is stored.
func (p *Plan) checkOut(ctx context.Context, r *Record) error {
	ctx, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	temp, err := os.MkdirTemp(p.store.Temp, tempName)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := errors.Join(p.repo.Mirror(temp, nil), p.repo.Sparse(temp)); err != nil {
		return err
	}
	g := &git.Git{Path: p.git, Env: p.store.Env, Dir: temp, Root: r.Path, Index: filepath.Join(r.admin(), "index")}
	if err := g.InTree(ctx, nil, io.Discard, "read-tree", "-m", "-u", r.Base); err != nil {
		return err
	}
	if _, err := os.Stat(p.Cwd); errors.Is(err, fs.ErrNotExist) {
		return refuse("start the run in another folder", "the folder %s is left out by the sparse checkout", p.sub)
	}
	return nil
}

// tempName begins the names of folders that amux clean removes.
const tempName = "agent-mux-replay-"

// Undo gives the worktree back for a run that was not started.
func (p *Plan) Undo() {
	if p.run == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), git.UserTime)
	defer cancel()
	unlock, err := p.store.lock(ctx)
	if err != nil {
		return // Sweep will
	}
	r, err := p.store.Read(p.Name)
	switch {
	case err != nil || !slices.Contains(r.Runs, p.run):
	case p.fresh && len(r.Runs) == 1:
		_ = p.store.remove(ctx, r, r.Base)
	default:
		r.Runs = slices.DeleteFunc(r.Runs, func(run string) bool { return run == p.run })
		_ = p.store.write(r)
	}
	unlock()
	empty(p.store.Dir)
}
