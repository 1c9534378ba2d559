package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a user with a repository, and runs that are live or not.
type world struct {
	t     *testing.T
	repo  string
	home  string
	env   []string
	live  map[string]bool
	store *Store
}

func newWorld(t *testing.T, name string, init ...string) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not in PATH, and without it there is nothing to test")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, repo: filepath.Join(base, name), home: filepath.Join(base, "home"), live: map[string]bool{}}
	temp := filepath.Join(base, "temp")
	for _, dir := range []string{w.repo, w.home, temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
	w.store = &Store{Dir: filepath.Join(base, "worktrees"), Env: w.env, Temp: temp, Live: func(run string) bool { return w.live[run] }}
	w.must("config", "--global", "user.name", "n")
	w.must("config", "--global", "user.email", "e@example.com")
	w.must("config", "--global", "protocol.file.allow", "always")
	w.must(append([]string{"init", "-q", "-b", "main"}, init...)...)
	t.Cleanup(func() {
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("left in the temporary folder: %v", left)
		}
	})
	return w
}

// committed is a world with three files in its last commit.
func committed(t *testing.T) *world {
	w := newWorld(t, "repo")
	w.write("a", "one\ntwo\nthree\n")
	w.write("sub/b", "b\n")
	w.write("gone", "x\n")
	w.must("add", "-A")
	w.must("commit", "-qm", "first")
	return w
}

func (w *world) gitIn(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (w *world) must(args ...string) string { w.t.Helper(); return w.mustIn(w.repo, args...) }

func (w *world) mustIn(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.gitIn(dir, args...)
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

func (w *world) write(name, text string) { w.t.Helper(); w.put(w.repo, name, text) }

func (w *world) put(dir, name, text string) {
	w.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// state is every file below a folder, with its content; of .git also its objects.
func (w *world) state(dir string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all[rel] = string(data)
			return err
		}
		all[rel] = e.Type().String()
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) same(before map[string]string, dir string) {
	w.t.Helper()
	after := w.state(dir)
	for name, text := range after {
		if old, ok := before[name]; !ok {
			w.t.Errorf("%s is new", name)
		} else if old != text {
			w.t.Errorf("%s was changed", name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			w.t.Errorf("%s is gone", name)
		}
	}
}

// made makes a worktree for a run, which has ended then.
func (w *world) made(name string) string {
	w.t.Helper()
	p, err := w.store.Plan(w.t.Context(), w.repo, name)
	if err == nil {
		err = p.Make(w.t.Context(), "run-of-"+name)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Cwd
}

func (w *world) status(name string) Status {
	w.t.Helper()
	r, err := w.store.Read(name)
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := w.store.Status(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// nothing checks that no worktree is left, nor anything of one.
func (w *world) nothing() {
	w.t.Helper()
	for _, dir := range []string{w.store.Dir, w.store.state()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != ".state" && e.Name() != ".lock" {
				w.t.Errorf("%s is left in %s", e.Name(), dir)
			}
		}
	}
}

func (w *world) refused(err error, want string) {
	w.t.Helper()
	refused, ok := errors.AsType[*Refused](err)
	if !ok || !strings.Contains(refused.Why, want) {
		w.t.Errorf("got %v, want a refusal with %q", err, want)
	}
}

// A worktree has the last commit, on its own branch. When it is dropped the repository is
// byte for byte as it was.
func TestMakeAndDrop(t *testing.T) {
	w := committed(t)
	w.write("a", "changed\n")
	w.write("untracked", "u\n")
	w.write("sub/staged", "s\n")
	w.must("add", "sub/staged")
	before := w.state(w.repo)
	dir := w.made("one")
	if got := w.mustIn(dir, "status", "--porcelain"); got != "" {
		t.Errorf("it is not clean: %s", got)
	}
	if branch := w.mustIn(dir, "symbolic-ref", "HEAD"); branch != "refs/heads/amux/one" {
		t.Errorf("HEAD is %s", branch)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(data) != "one\ntwo\nthree\n" {
		t.Errorf("a is %q, %v", data, err)
	}
	if out, err := w.gitIn(w.repo, "worktree", "remove", dir); err == nil {
		t.Errorf("git removed it: %s", out)
	}
	if st := w.status("one"); st.Dirty() || st.Changed.Files != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := w.store.Drop(t.Context(), "one", false); err != nil {
		t.Fatal(err)
	}
	w.same(before, w.repo)
	w.nothing()
}

// Whatever is nowhere else keeps a worktree, hidden or not; discard gives it up.
func TestDirtyIsKept(t *testing.T) {
	for name, change := range map[string]func(w *world, dir string){
		"a changed file": func(w *world, dir string) { w.put(dir, "a", "new\n") },
		"a new file":     func(w *world, dir string) { w.put(dir, "new", "new\n") },
		"a removed file": func(w *world, dir string) { os.Remove(dir + "/a") },
		"a staged file":  func(w *world, dir string) { w.put(dir, "new", "1\n"); w.mustIn(dir, "add", "new") },
		"a commit":       func(w *world, dir string) { w.mustIn(dir, "commit", "-q", "--allow-empty", "-m", "c") },
		"a loose commit": func(w *world, dir string) {
			w.mustIn(dir, "checkout", "-q", "--detach")
			w.mustIn(dir, "commit", "-q", "--allow-empty", "-m", "c")
		},
		"a commit behind": func(w *world, dir string) {
			w.mustIn(dir, "commit", "-q", "--allow-empty", "-m", "c")
			w.mustIn(dir, "checkout", "-q", "--detach", "main")
		},
		"a repository": func(w *world, dir string) { w.mustIn(dir, "init", "-q", "inner"); w.put(dir, "inner/x", "1\n") },
		"an assumed file": func(w *world, dir string) {
			w.mustIn(dir, "update-index", "--assume-unchanged", "a")
			w.put(dir, "a", "hidden\n")
		},
		"a skipped file": func(w *world, dir string) {
			w.mustIn(dir, "update-index", "--skip-worktree", "a")
			w.put(dir, "a", "hidden\n")
		},
		"an unusable .git": func(w *world, dir string) { w.put(dir, ".git", "gitdir: /nowhere\n") },
		"the same commit on another worktree": func(w *world, dir string) {
			w.mustIn(dir, "commit", "-q", "--allow-empty", "-m", "c")
			two := w.made("two")
			w.mustIn(two, "merge", "-q", "amux/one")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			before := w.state(w.repo + "/.git/refs")
			dir := w.made("one")
			change(w, dir)
			_, err := w.store.Drop(t.Context(), "one", false)
			w.refused(err, "worktree one has")
			if names, err := w.store.Prune(t.Context(), false); err != nil || len(names) > 0 {
				t.Errorf("pruned %v, %v", names, err)
			}
			if _, err := os.Stat(dir); err != nil {
				t.Fatal(err)
			}
			for _, tree := range []string{"one", "two"} {
				if _, err := w.store.Drop(t.Context(), tree, true); err != nil && tree == "one" {
					t.Fatal(err)
				}
			}
			w.same(before, w.repo+"/.git/refs")
			w.nothing()
		})
	}
}

// What is also elsewhere does not keep it.
func TestCleanIsPruned(t *testing.T) {
	for name, change := range map[string]func(w *world, dir string){
		"nothing": func(*world, string) {},
		"a merged commit": func(w *world, dir string) {
			w.mustIn(dir, "commit", "-q", "--allow-empty", "-m", "c")
			w.must("merge", "-q", "amux/one")
		},
		"a commit on a branch": func(w *world, dir string) {
			w.mustIn(dir, "checkout", "-qb", "other")
			w.mustIn(dir, "commit", "-q", "--allow-empty", "-m", "c")
		},
		"an ignored file": func(w *world, dir string) {
			w.put(w.repo+"/.git/info", "exclude", "*.log\n")
			w.put(dir, "x.log", "1\n")
		},
		"a base amended":        func(w *world, _ string) { w.must("commit", "-q", "--amend", "-m", "again") },
		"a packed branch":       func(w *world, _ string) { w.must("pack-refs", "--all") },
		"a folder that is gone": func(w *world, dir string) { os.RemoveAll(dir) },
		"a stale lock": func(w *world, _ string) {
			w.put(w.repo, ".git/refs/heads/amux/one.lock", "")
			long := time.Now().Add(-time.Hour)
			os.Chtimes(w.repo+"/.git/refs/heads/amux/one.lock", long, long)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			dir := w.made("one")
			w.live["run-of-one"] = true
			change(w, dir)
			if names, err := w.store.Prune(t.Context(), false); err != nil || len(names) > 0 {
				t.Errorf("pruned a live one: %v, %v", names, err)
			}
			_, err := w.store.Drop(t.Context(), "one", true)
			w.refused(err, "in use by run")
			w.live["run-of-one"] = false
			if dry, err := w.store.Prune(t.Context(), true); err != nil || len(dry) != 1 {
				t.Errorf("dry: %v, %v", dry, err)
			}
			if names, err := w.store.Prune(t.Context(), false); err != nil || len(names) != 1 {
				t.Fatalf("pruned %v, %v", names, err)
			}
			w.nothing()
			if out := w.must("worktree", "list"); strings.Contains(out, w.store.Dir) {
				t.Error(out)
			}
			if out := w.must("branch", "--list", "amux/*"); out != "" {
				t.Error(out)
			}
		})
	}
}

// One run at a time has a worktree; a later one goes on where the earlier one stopped.
func TestLease(t *testing.T) {
	w := committed(t)
	dir := w.made("one")
	w.put(dir, "new", "1\n")
	w.live["run-of-one"] = true
	_, err := w.store.Plan(t.Context(), w.repo, "one")
	w.refused(err, "in use by run")
	_, _, err = w.store.Merge(t.Context(), "one")
	w.refused(err, "in use by run")
	w.live["run-of-one"] = false
	p, err := w.store.Plan(t.Context(), filepath.Join(w.repo, "sub"), "one")
	if err != nil {
		t.Fatal(err)
	}
	// Of two that have planned, one gets it.
	other, err := w.store.Plan(t.Context(), w.repo, "one")
	if err != nil {
		t.Fatal(err)
	}
	w.live["second"] = true
	if err := p.Make(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "sub"); p.Cwd != want {
		t.Errorf("it works in %s, want %s", p.Cwd, want)
	}
	w.refused(other.Make(t.Context(), "third"), "in use by run second")
	other.Undo()
	w.live["second"] = false
	p.Undo()
	r, err := w.store.Read("one")
	if err != nil || !slices.Equal(r.Runs, []string{"run-of-one"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
}

// A run that is not started leaves nothing.
func TestUndo(t *testing.T) {
	w := committed(t)
	before := w.state(w.repo)
	p, err := w.store.Plan(t.Context(), w.repo, "one")
	if err == nil {
		err = p.Make(t.Context(), "r")
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Undo()
	w.same(before, w.repo)
	w.nothing()
}

// What cannot have a worktree is refused in a line, before anything is made.
func TestRefusedBeforehand(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(w *world) (cwd, tree string)
		want string
	}{
		"no repository": {func(w *world) (string, string) { return w.home, "x" }, "is in no git work tree"},
		"a bare repository": {func(w *world) (string, string) {
			w.must("init", "-q", "--bare", w.home+"/bare")
			return w.home + "/bare", "x"
		}, "is in no git work tree"},
		"bare by setting": {func(w *world) (string, string) { w.must("config", "core.bare", "true"); return w.repo, "x" }, "bare"},
		"no commit": {func(w *world) (string, string) {
			w.must("init", "-q", w.home+"/empty")
			return w.home + "/empty", "x"
		}, "has no commit yet"},
		"a new folder": {func(w *world) (string, string) { w.write("fresh/x", "1\n"); return w.repo + "/fresh", "x" }, "is not in the last commit"},
		"a branch":     {func(w *world) (string, string) { w.must("branch", "amux/x"); return w.repo, "x" }, "has a branch amux/x"},
		"branch amux":  {func(w *world) (string, string) { w.must("branch", "amux"); return w.repo, "x" }, "has a branch amux"},
		"a worktree":   {func(w *world) (string, string) { w.must("worktree", "add", "-q", w.home+"/x"); return w.repo, "x" }, "a worktree x is there already"},
		"elsewhere": {func(w *world) (string, string) {
			w.made("x")
			w.must("clone", "-q", w.repo, w.home+"/other")
			return w.home + "/other", "x"
		}, "is of another repository"},
		"no git":      {func(w *world) (string, string) { w.store.Env = []string{"PATH=/nowhere"}; return w.repo, "x" }, "git is not in PATH"},
		"a bad name":  {func(w *world) (string, string) { return w.repo, "../x" }, "invalid name"},
		"two dots":    {func(w *world) (string, string) { return w.repo, "a..b" }, "invalid name"},
		"a lock":      {func(w *world) (string, string) { return w.repo, "a.lock" }, "invalid name"},
		"an option":   {func(w *world) (string, string) { return w.repo, "-x" }, "invalid name"},
		"a long name": {func(w *world) (string, string) { return w.repo, strings.Repeat("x", 65) }, "invalid name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			cwd, tree := test.set(w)
			before := w.state(w.repo)
			_, err := w.store.Plan(t.Context(), cwd, tree)
			w.refused(err, test.want)
			w.same(before, w.repo)
		})
	}
}

// Repositories of every kind get their worktrees, and are as before when these are dropped.
func TestRepositories(t *testing.T) {
	for name, set := range map[string]func(w *world) (cwd string){
		"detached":         func(w *world) string { w.must("checkout", "-q", "--detach"); return w.repo },
		"packed":           func(w *world) string { w.must("gc", "-q"); return w.repo },
		"sha256":           func(w *world) string { return w.other("init", "-q", "--object-format=sha256") },
		"shallow":          func(w *world) string { return w.other("clone", "-q", "--depth=1", "file://"+w.repo) },
		"spaces, newlines": func(w *world) string { return w.otherNamed("a b\nc'\"é", "init", "-q") },
		"a linked worktree": func(w *world) string {
			w.must("worktree", "add", "-q", w.home+"/linked")
			return w.home + "/linked"
		},
		"sparse": func(w *world) string { w.must("sparse-checkout", "set", "sub"); return w.repo },
		"submodules": func(w *world) string {
			w.must("clone", "-q", ".", w.home+"/lib")
			w.must("submodule", "--quiet", "add", w.home+"/lib", "lib")
			w.must("commit", "-qm", "lib")
			return w.repo
		},
		"a submodule": func(w *world) string {
			w.must("clone", "-q", ".", w.home+"/lib")
			w.must("submodule", "--quiet", "add", w.home+"/lib", "lib")
			w.must("commit", "-qm", "lib")
			return w.repo + "/lib"
		},
		"line endings": func(w *world) string {
			w.must("config", "core.autocrlf", "true")
			return w.repo
		},
		"worktree settings": func(w *world) string { w.must("config", "extensions.worktreeConfig", "true"); return w.repo },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			cwd := set(w)
			w.gitIn(cwd, "status") // as it looks to git from here on
			common := w.mustIn(cwd, "rev-parse", "--git-common-dir")
			if !filepath.IsAbs(common) {
				common = filepath.Join(cwd, common)
			}
			before, git := w.state(cwd), w.state(common)
			p, err := w.store.Plan(t.Context(), cwd, "one")
			if err == nil {
				err = p.Make(t.Context(), "r")
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := w.mustIn(p.Cwd, "status", "--porcelain"); got != "" {
				t.Errorf("it is not clean: %s", got)
			}
			if name == "sparse" {
				if _, err := os.Stat(filepath.Join(p.Cwd, "sub", "b")); err != nil {
					t.Error(err)
				}
				w.mustIn(p.Cwd, "sparse-checkout", "list")
			}
			if notes := len(p.Notes) > 0; notes != (name == "submodules") {
				t.Errorf("notes %v", p.Notes)
			}
			w.put(p.Cwd, "sub/new", "new\n")
			if st := w.status("one"); st.Strange != "" || st.Unsaved.Files != 1 || !st.Dirty() {
				t.Errorf("%+v", st)
			}
			files, _, err := w.store.Merge(t.Context(), "one")
			if err != nil || len(files) != 1 {
				t.Errorf("merged %v, %v", files, err)
			}
			if data, err := os.ReadFile(filepath.Join(cwd, "sub", "new")); err != nil || strings.TrimSpace(string(data)) != "new" {
				t.Errorf("%q, %v", data, err)
			}
			if _, err := w.store.Drop(t.Context(), "one", false); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(cwd, "sub", "new")); err != nil {
				t.Fatal(err)
			}
			w.same(before, cwd)
			w.same(git, common)
			w.nothing()
		})
	}
}

// other makes a repository besides the first, with a commit.
func (w *world) other(args ...string) string { w.t.Helper(); return w.otherNamed("other", args...) }

func (w *world) otherNamed(name string, args ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.home, name)
	if runtime.GOOS == "windows" {
		w.t.Skipf("SKIPPED: Windows has no folder named %q", name)
	}
	w.must(append(args, dir)...)
	if _, err := os.Stat(dir + "/a"); err != nil {
		w.put(dir, "a", "1\n")
		w.put(dir, "sub/b", "1\n")
		w.mustIn(dir, "add", "-A")
		w.mustIn(dir, "commit", "-qm", "first")
	}
	return dir
}

// What a git that was killed leaves of an entry is removed; an entry of the user's is not.
func TestHalfMade(t *testing.T) {
	for name, gitdir := range map[string]string{"empty": "", "begun": "/t", "missing": "-", "another": "/elsewhere/one/.git\n"} {
		for _, state := range []string{making, removing} {
			w := committed(t)
			before := w.state(w.repo)
			w.made("one")
			r, err := w.store.Read("one")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(r.Common, "worktrees", "one", "gitdir")
			if name == "begun" {
				gitdir = r.Path[:5]
			}
			if err := os.WriteFile(file, []byte(gitdir), 0o600); err != nil {
				t.Fatal(err)
			}
			if gitdir == "-" {
				os.Remove(file)
			}
			r.State, r.Tips = state, []string{r.Base}
			if err := errors.Join(w.store.write(r), w.store.Sweep(t.Context())); err != nil {
				t.Fatal(err)
			}
			w.nothing()
			if name == "another" {
				if !exists(file) {
					t.Error("the user's entry is gone")
				}
				continue
			}
			w.same(before, w.repo)
		}
	}
}

// Given up at any moment, a worktree is made or it is not; Sweep leaves nothing of one that
// is not, and the repository is as it was.
func TestGivenUpAtAnyMoment(t *testing.T) {
	w := committed(t)
	before := w.state(w.repo)
	made := 0
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*2)*time.Millisecond)
		p, err := w.store.Plan(ctx, w.repo, "one")
		if err == nil {
			err = p.Make(ctx, fmt.Sprint(i))
		}
		cancel()
		if err == nil {
			made++
		}
		if err := w.store.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			if _, err := w.store.Drop(t.Context(), "one", false); err != nil {
				t.Fatal(err)
			}
		}
		w.same(before, w.repo)
		w.nothing()
		if t.Failed() {
			t.Fatalf("given up after %d ms", i*2)
		}
	}
	t.Logf("%d of 40 were made", made)
}
