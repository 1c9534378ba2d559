// Package changes records what a run changed in the git work tree that it worked in,
// without the agent's help: a git tree of all files before the agent starts, another when
// the run has ended. Ignored files are left out, untracked ones are in.
//
// Nothing is written to the user's repository. The trees are made in a private git folder
// of the run, with an index and objects of its own; the repository's objects are its
// alternates. The repository is not trusted: git never reads its configuration while it
// looks at files, so no filter, hook, monitor or diff driver that it names is started.
//
// What a run at another place changed is recorded there, by the same code, and sent here.
//
// A Set belongs to the process that holds the run's lock. Others may read it.
package changes

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/git"
)

// How long git may take. The agent waits for the first, the end of the run for the second.
const (
	startTime = 5 * time.Second
	endTime   = 15 * time.Second
)

// Record is what is kept of a run's changes beside the trees: changes.json.
type Record struct {
	Version int    `json:"version"` // 1
	Root    string `json:"root"`    // of the work tree
	// Place, if not empty, is the other place where the work tree is.
	Place string `json:"place,omitempty"`
	// StartTree and EndTree are ids of git trees, in the run's own object folder.
	StartTree string `json:"start_tree,omitempty"`
	EndTree   string `json:"end_tree,omitempty"`
	// Taken is when the tree of the end was.
	Taken *time.Time `json:"taken,omitempty"`
	// Reason says why a tree is missing.
	Reason string `json:"reason,omitempty"`
	// LeftOut counts files that could not be read.
	LeftOut int `json:"left_out,omitempty"`
	Figures
}

// Figures say how much was changed.
type Figures = git.Figures

// Set is the recorded changes of one run.
type Set struct {
	dir  string // private git folder
	deep bool   // it is of a repository in the work tree of another
	env  []string
	time time.Duration // for git; 0: as the constants say
}

// New names the changes of the run whose folder is given; they need not exist. env is the
// environment that git is found in.
func New(runDir string, env []string) *Set {
	return &Set{dir: filepath.Join(runDir, "changes"), env: env}
}

const recordName = "changes.json"

// Record reads what is recorded. fs.ErrNotExist: nothing is.
func (s *Set) Record() (Record, error) {
	var r Record
	data, err := os.ReadFile(filepath.Join(s.dir, recordName))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func (s *Set) write(r Record) error {
	r.Version = 1
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "."+recordName)
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(s.dir, recordName))
}

// Start takes the tree that the run starts from. Outside a git work tree it does nothing,
// and starts nothing. own are folders of amux, which are left out where they lie in the
// work tree. What goes wrong is in the record.
func (s *Set) Start(ctx context.Context, cwd string, own []string) {
	root, ok := git.FindRoot(cwd)
	if !ok {
		return
	}
	ctx, cancel := s.limit(ctx, startTime)
	defer cancel()
	r := Record{Root: root}
	err := s.start(ctx, &r, own)
	if err != nil {
		_ = os.RemoveAll(s.dir) // perhaps for the space
		r = Record{Root: root, Reason: reason(ctx, err)}
	}
	if os.MkdirAll(s.dir, 0o700) == nil {
		_ = s.write(r) // without it there are no changes to show, and the run goes on
	}
}

func (s *Set) start(ctx context.Context, r *Record, own []string) error {
	path := command.Look("git", s.env, r.Root)
	if path == "" {
		return errors.New("git is not in PATH")
	}
	repo, err := git.Open(ctx, path, r.Root, s.env)
	if err != nil {
		return err
	}
	if err := repo.Mirror(s.dir, own); err != nil {
		return err
	}
	t := git.Tree{Git: s.git(path, r.Root), Untracked: repo.Untracked()}
	got, err := t.Write(ctx)
	r.StartTree, r.LeftOut = got.ID, got.LeftOut
	if err == nil && !s.deep {
		s.startNested(ctx, t.Git, got.Nested)
	}
	return err
}

// End takes the tree that the run ends with, unless it was taken.
func (s *Set) End(ctx context.Context) {
	r, err := s.Record()
	if err != nil || r.StartTree == "" || r.EndTree != "" || r.Reason != "" || r.Place != "" {
		return
	}
	ctx, cancel := s.limit(ctx, endTime)
	defer cancel()
	began := time.Now()
	if err := s.end(ctx, &r); err != nil {
		r.EndTree, r.Figures, r.Reason = "", Figures{}, reason(ctx, err)
		s.dropSince(began) // perhaps the disk is full of it
	}
	now := time.Now().UTC()
	r.Taken = &now
	_ = s.write(r) // else the next who concludes the run tries again
}

// dropSince removes the objects that were written since a time.
func (s *Set) dropSince(began time.Time) {
	_ = filepath.WalkDir(filepath.Join(s.dir, "objects"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil && !info.ModTime().Before(began) {
			_ = os.Remove(path)
		}
		return nil
	})
}

func (s *Set) end(ctx context.Context, r *Record) error {
	g, err := s.open(r.Root)
	if err != nil {
		return err
	}
	// The index of the start stays until all is well: what fails is dropped.
	index := g.Index
	g.Index = index + ".end"
	defer os.Remove(g.Index)
	if err := git.CopyIndex(index, g.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	got, err := git.Tree{Git: g, Untracked: s.untracked()}.Write(ctx)
	if err != nil {
		return err
	}
	r.EndTree, r.LeftOut = got.ID, max(r.LeftOut, got.LeftOut)
	for _, inner := range s.nested() {
		inner.End(ctx)
		if in, err := inner.Record(); err == nil {
			r.Figures = r.Figures.Plus(in.Figures)
			r.LeftOut += in.LeftOut
		}
	}
	if r.EndTree == r.StartTree {
		return nil
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { g.Keep(ctx, r.StartTree, r.EndTree) })
	defer keeping.Wait()
	files, err := g.Files(ctx, r.StartTree, r.EndTree)
	if err != nil {
		return err
	}
	r.Figures = r.Figures.Plus(git.FiguresOf(files))
	return nil
}

func (s *Set) limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s.time > 0 {
		d = s.time
	}
	return context.WithTimeout(ctx, d)
}

// reason says in one line why there is no tree.
func reason(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "git took too long"
	}
	return git.OneLine(err.Error())
}

// open is git in the private folder, for the files below root.
func (s *Set) open(root string) (*git.Git, error) {
	path := command.Look("git", s.env, root)
	if path == "" {
		return nil, errors.New("git is not in PATH")
	}
	return s.git(path, root), nil
}

func (s *Set) git(path, root string) *git.Git {
	return &git.Git{Path: path, Env: s.env, Dir: s.dir, Root: root, Index: filepath.Join(s.dir, "index")}
}

func (s *Set) untracked() bool {
	_, err := os.Lstat(filepath.Join(s.dir, git.UntrackedFile))
	return errors.Is(err, fs.ErrNotExist)
}
