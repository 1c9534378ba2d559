package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Merge brings files and commits of a worktree into the user's files, from where the two
// parted; nothing but files changes, and then the worktree may be dropped.
func TestMerge(t *testing.T) {
	w := committed(t)
	dir := w.made("one")
	w.put(dir, "a", "ONE\ntwo\nthree\n")
	w.mustIn(dir, "commit", "-qam", "by the agent")
	w.put(dir, "new/file", "n\n")
	if err := errors.Join(os.Remove(dir+"/gone"), os.Chmod(dir+"/sub/b", 0o755), os.Symlink("a", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	w.write("a", "one\ntwo\nTHREE\n") // meanwhile
	w.must("commit", "-qam", "by the user")
	w.write("mine", "untracked\n")
	git := w.state(w.repo + "/.git")
	files, r, err := w.store.Merge(t.Context(), "one")
	if err != nil || len(files) != 5 || r.Root != w.repo {
		t.Fatalf("%v, %v", files, err)
	}
	w.same(git, w.repo+"/.git")
	got := w.must("status", "--porcelain", "-uall")
	if want := "M a\n D gone\n M sub/b\n?? link\n?? mine\n?? new/file"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	if data, _ := os.ReadFile(w.repo + "/a"); string(data) != "ONE\ntwo\nTHREE\n" {
		t.Errorf("a is %q", data)
	}
	// It is pruned by nobody, for what was merged is not committed; but it may be dropped.
	if names, err := w.store.Prune(t.Context(), false); err != nil || len(names) > 0 {
		t.Errorf("pruned %v, %v", names, err)
	}
	w.put(dir, "later", "1\n")
	_, err = w.store.Drop(t.Context(), "one", false)
	w.refused(err, "worktree one has")
	if err := os.Remove(dir + "/later"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Drop(t.Context(), "one", false); err != nil {
		t.Error(err)
	}
	w.nothing()
}

// A worktree is merged again as work goes on in it: what was committed meanwhile does not
// conflict, edited or not, and what was thrown away comes again.
func TestMergeAgain(t *testing.T) {
	const first = "1\n2\n3\n4\n"
	for name, test := range map[string]struct {
		meanwhile func(w *world)
		want      string
	}{
		"committed":            {func(w *world) { w.must("add", "-A"); w.must("commit", "-qm", "m") }, first + "more\n"},
		"edited and committed": {func(w *world) { w.write("new", "0\n"+first); w.must("add", "-A"); w.must("commit", "-qm", "m") }, "0\n" + first + "more\n"},
		"thrown away":          {func(w *world) { w.must("clean", "-qfd") }, first + "more\n"},
		"thrown away, and others committed": {func(w *world) {
			w.must("clean", "-qfd")
			w.must("commit", "-q", "--allow-empty", "-m", "m")
		}, first + "more\n"},
		"committed, and amux was killed before it kept the merge": {func(w *world) {
			os.Rename(w.store.keptDir(&Record{Name: "one"}), w.store.mergeDir(&Record{Name: "one"}))
			w.must("add", "-A")
			w.must("commit", "-qm", "m")
		}, first + "more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			dir := w.made("one")
			w.put(dir, "new", first)
			if files, _, err := w.store.Merge(t.Context(), "one"); err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			test.meanwhile(w)
			w.put(dir, "new", first+"more\n")
			if files, _, err := w.store.Merge(t.Context(), "one"); err != nil || len(files) != 1 {
				t.Fatalf("again: %v, %v", files, err)
			}
			if data, err := os.ReadFile(w.repo + "/new"); err != nil || string(data) != test.want {
				t.Errorf("%q, %v", data, err)
			}
			if _, err := w.store.Drop(t.Context(), "one", false); err != nil {
				t.Error(err)
			}
			w.nothing()
		})
	}
}

// Where a merge would take anything from the user it is refused, and changes nothing.
func TestMergeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(w *world, dir string)
		want string
	}{
		"a changed file":   {func(w *world, _ string) { w.write("sub/b", "mine\n") }, "not committed: sub/b"},
		"a staged file":    {func(w *world, _ string) { w.write("s", "1\n"); w.must("add", "s") }, "not committed: s"},
		"staged and gone":  {func(w *world, _ string) { w.write("s", "1\n"); w.must("add", "s"); os.Remove(w.repo + "/s") }, "not committed: s"},
		"a removed file":   {func(w *world, _ string) { os.Remove(w.repo + "/gone") }, "not committed: gone"},
		"an assumed file":  {func(w *world, _ string) { w.must("update-index", "--assume-unchanged", "a"); w.write("a", "mine\n") }, "not committed: a"},
		"a conflict":       {func(w *world, _ string) { w.write("a", "uno\n"); w.must("commit", "-qam", "c") }, "both changed these files: a"},
		"an untracked one": {func(w *world, _ string) { w.write("new", "mine\n") }, "is in the way"},
		"an ignored one": {func(w *world, dir string) {
			w.put(w.repo+"/.git/info", "exclude", "new\n")
			w.mustIn(dir, "add", "-f", "new")
			w.write("new", "mine\n")
		}, "is in the way"},
		"a file above": {func(w *world, dir string) { w.put(dir, "d/e", "1\n"); w.write("d", "mine\n") }, "is in the way"},
		"a link above": {func(w *world, dir string) {
			w.put(dir, "d/e", "1\n")
			os.Symlink(w.home, w.repo+"/d")
		}, "is in the way"},
		"a merge at work": {func(w *world, _ string) { w.put(w.repo, ".git/MERGE_HEAD", w.must("rev-parse", "HEAD")+"\n") }, "git is at work"},
		"a lock":          {func(w *world, _ string) { w.put(w.repo, ".git/index.lock", "") }, "git is at work"},
		"a filter": {func(w *world, dir string) {
			w.put(w.repo, ".git/info/attributes", "")
			w.write(".gitattributes", "a filter=x\n")
			w.must("add", "-A")
			w.must("commit", "-qm", "filter")
		}, "by a filter"},
		"a repository": {func(w *world, dir string) {
			w.mustIn(dir, "init", "-q", "in")
			w.mustIn(dir+"/in", "commit", "-q", "--allow-empty", "-m", "c")
		}, "cannot be merged"},
		"no work tree": {func(w *world, _ string) {
			os.Rename(w.repo, w.repo+"2")
			os.Mkdir(w.repo, 0o700)
			os.Rename(w.repo+"2/.git", w.repo+"/git")
			os.Symlink(w.repo+"/git", w.home+"/x")
		}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			dir := w.made("one")
			w.put(dir, "a", "agent\n")
			w.put(dir, "new", "agent\n")
			test.set(w, dir)
			before, tree := w.state(w.repo), w.state(dir)
			_, _, err := w.store.Merge(t.Context(), "one")
			w.refused(err, test.want)
			w.same(before, w.repo)
			w.same(tree, dir)
			if entries, _ := os.ReadDir(w.store.mergeDir(&Record{Name: "one"})); len(entries) > 0 {
				t.Errorf("left %v", entries)
			}
		})
	}
}

// A merge that is cut off, with every file as it was, as it becomes, begun or missing, is
// taken back; what somebody changed since is left as it is and named.
func TestMergeIsTakenBack(t *testing.T) {
	for i := range 4 {
		w := committed(t)
		dir := w.made("one")
		w.put(dir, "a", "agent\nagent\n")
		w.put(dir, "new/file", "agent\n")
		w.put(dir, "sub/b", "agent\n")
		if err := os.Remove(dir + "/gone"); err != nil {
			t.Fatal(err)
		}
		before := w.state(w.repo)
		// As if amux had died in the middle: the merge is done, recorded as going on.
		if err := os.Mkdir(w.store.mergeDir(&Record{Name: "one"}), 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := w.store.Read("one")
		if err != nil {
			t.Fatal(err)
		}
		st, _, err := w.store.look(t.Context(), r, w.store.mergeDir(r))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.merge(t.Context(), r, st); err != nil {
			t.Fatal(err)
		}
		r.Merging, r.Merged = r.Merged, nil
		if err := w.store.write(r); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 1:
			w.write("a", "age")
			os.RemoveAll(w.repo + "/new")
			w.write("gone", "x\n")
		case 2:
			os.Remove(w.repo + "/a")
			w.write("sub/b", "b\n")
			w.write("new/file", "")
		case 3:
			w.write("a", "mine\n")
			after := w.state(w.repo)
			w.refused(w.store.Sweep(t.Context()), "were changed since: a")
			w.same(after, w.repo)
			continue
		}
		if err := w.store.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.same(before, w.repo)
		if files, _, err := w.store.Merge(t.Context(), "one"); err != nil || len(files) != 4 {
			t.Errorf("again: %v, %v", files, err)
		}
	}
}

// Given up at any moment, a merge is done or it is not.
func TestMergeGivenUpAtAnyMoment(t *testing.T) {
	w := committed(t)
	dir := w.made("one")
	for i := range 30 {
		w.put(dir, fmt.Sprintf("many/%d", i), strings.Repeat("line\n", 1000))
	}
	w.put(dir, "a", "agent\n")
	before := w.state(w.repo)
	done := 0
	for i := range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*5)*time.Millisecond)
		_, _, err := w.store.Merge(ctx, "one")
		cancel()
		if err := w.store.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			done++
			w.must("checkout", "-q", ".")
			w.must("clean", "-qfd")
			w.put(w.repo, ".git/index", before[".git/index"]) // git has renewed its times
		}
		w.same(before, w.repo)
		if t.Failed() {
			t.Fatalf("given up after %d ms", i*5)
		}
	}
	t.Logf("%d of 30 were done", done)
}

// A cloned repository is not trusted: no program that it or the caller's environment names
// is started, by nothing that is done with worktrees. Each attack is seen to work with plain
// git first.
func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the attacks are shell scripts, which Windows does not run")
	}
	filter := func(kind string) func(w *world, evil string) {
		return func(w *world, evil string) {
			w.must("config", "filter.evil."+kind, evil)
			w.put(w.repo, ".git/info/attributes", "* filter=evil\n")
		}
	}
	hook := func(name string) func(w *world, evil string) {
		return func(w *world, evil string) { os.Symlink(evil, w.repo+"/.git/hooks/"+name) }
	}
	add := []string{"worktree", "add", "-q", "../plain"}
	for name, attack := range map[string]struct {
		set   func(w *world, evil string)
		plain []string // what plain git does to start it
	}{
		"post-checkout":         {hook("post-checkout"), add},
		"reference-transaction": {hook("reference-transaction"), add},
		"post-index-change":     {hook("post-index-change"), add},
		"post-merge":            {hook("post-merge"), []string{"merge", "-q", "other"}},
		"pre-merge-commit":      {hook("pre-merge-commit"), []string{"merge", "-q", "--no-ff", "other"}},
		"core.hooksPath": {func(w *world, evil string) {
			os.Mkdir(w.repo+"/hooks", 0o700)
			os.Symlink(evil, w.repo+"/hooks/post-checkout")
			w.must("config", "core.hooksPath", w.repo+"/hooks")
		}, add},
		"core.fsmonitor": {func(w *world, evil string) { w.must("config", "core.fsmonitor", evil) }, []string{"status"}},
		"filter.smudge":  {filter("smudge"), add},
		"filter.process": {filter("process"), add},
		"filter.clean":   {filter("clean"), []string{"add", "-A"}},
		"a required filter": {func(w *world, evil string) {
			filter("smudge")(w, evil)
			w.must("config", "filter.evil.required", "true")
		}, add},
		"filter in the tree": {func(w *world, evil string) {
			w.must("config", "filter.evil.smudge", evil)
			w.write(".gitattributes", "* filter=evil\n")
			w.must("add", "-A")
			w.must("commit", "-qm", "f")
		}, add},
		"the user's filter": {func(w *world, evil string) {
			filter("smudge")(w, evil)
			w.must("config", "--unset", "filter.evil.smudge")
			w.must("config", "--global", "filter.evil.smudge", evil)
		}, add},
		"an included setting": {func(w *world, evil string) {
			w.write("more", "[core]\n\tfsmonitor = "+evil+"\n")
			w.must("config", "include.path", "../more")
		}, []string{"status"}},
		"a worktree's setting": {func(w *world, evil string) {
			w.must("config", "extensions.worktreeConfig", "true")
			w.must("config", "--worktree", "core.fsmonitor", evil)
		}, []string{"status"}},
		"merge.driver": {func(w *world, evil string) {
			w.must("config", "merge.evil.driver", evil+" %A %O %B")
			w.put(w.repo, ".git/info/attributes", "* merge=evil\n")
			w.write("a", "ONE\ntwo\nthree\n")
			w.must("commit", "-qam", "mine")
		}, []string{"merge", "-q", "other"}},
		"merge.default": {func(w *world, evil string) {
			w.must("config", "merge.evil.driver", evil+" %A %O %B")
			w.must("config", "merge.default", "evil")
			w.write("a", "ONE\ntwo\nthree\n")
			w.must("commit", "-qam", "mine")
		}, []string{"merge", "-q", "other"}},
		"diff.external": {func(w *world, evil string) { w.must("config", "diff.external", evil); w.write("a", "x\n") }, []string{"diff"}},
		"diff.textconv": {func(w *world, evil string) {
			w.must("config", "diff.evil.textconv", evil)
			w.put(w.repo, ".git/info/attributes", "* diff=evil\n")
			w.write("a", "x\n")
		}, []string{"diff"}},
		"a signature": {func(w *world, evil string) {
			w.must("config", "commit.gpgSign", "true")
			w.must("config", "gpg.program", evil)
		}, []string{"commit", "-q", "--allow-empty", "-m", "s"}},
		"a missing object": {func(w *world, evil string) {
			w.must("config", "extensions.partialClone", "origin")
			w.must("config", "remote.origin.url", "ext::"+evil)
			w.must("config", "remote.origin.promisor", "true")
			w.must("config", "protocol.ext.allow", "always")
			os.RemoveAll(w.repo + "/.git/objects/" + w.must("rev-parse", "HEAD:a")[:2])
		}, add},
		"an environment's setting": {func(w *world, evil string) {
			w.env = append(w.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0="+evil)
			w.store.Env = w.env
		}, []string{"status"}},
		"an environment's folder": {func(w *world, evil string) {
			w.must("clone", "-q", "--bare", ".", w.home+"/evil.git")
			os.Symlink(evil, w.home+"/evil.git/hooks/post-checkout")
			w.env = append(w.env, "GIT_DIR="+w.home+"/evil.git")
			w.store.Env = w.env
		}, add},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := committed(t)
			w.must("checkout", "-qb", "other")
			w.write("a", "one\ntwo\nTHREE\n")
			w.must("commit", "-qam", "theirs")
			w.must("checkout", "-q", "main")
			mark, evil := w.home+"/mark", w.home+"/evil"
			if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> "+mark+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			attack.set(w, evil)
			victim := w.repo + "2"
			if out, err := exec.Command("cp", "-a", w.repo, victim).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, out)
			}
			if out, _ := w.gitIn(victim, attack.plain...); !exists(mark) {
				t.Fatalf("the attack does not work with plain git: %s", out)
			}
			if err := os.Remove(mark); err != nil {
				t.Fatal(err)
			}
			p, err := w.store.Plan(t.Context(), w.repo, "one")
			if err == nil {
				err = p.Make(t.Context(), "r")
			}
			if (err != nil) != (name == "a missing object") {
				t.Errorf("make: %v", err)
			}
			if err != nil {
				p.Undo()
			} else {
				w.put(p.Cwd, "a", "one\ntwo\nTHREE\n")
				w.put(p.Cwd, "new", "1\n")
				if st := w.status("one"); !st.Dirty() {
					t.Errorf("%+v", st)
				}
				_, _, err := w.store.Merge(t.Context(), "one")
				t.Logf("merge: %v", err)
				_, err = w.store.Prune(t.Context(), false)
				if _, dropped := w.store.Drop(t.Context(), "one", true); err != nil || dropped != nil {
					t.Errorf("prune: %v, drop: %v", err, dropped)
				}
			}
			if data, err := os.ReadFile(mark); err == nil {
				t.Errorf("a program of the repository was started: %s", data)
			}
			w.nothing()
		})
	}
}
