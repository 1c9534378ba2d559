package changes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A cloned repository is not trusted: no program that it, its submodules or the caller's
// environment names is started, by nothing that is done with a run's changes. Each attack
// is seen to work with plain git first.
func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the attacks are shell scripts, which Windows does not run")
	}
	for name, attack := range map[string]struct {
		// set prepares the repository; evil is a program that leaves a mark.
		set func(w *world, evil string)
		// plain is what plain git does to start it.
		plain []string
	}{
		"core.fsmonitor": {func(w *world, evil string) { w.must("config", "core.fsmonitor", evil) }, []string{"status"}},
		"hooks":          {func(w *world, evil string) { w.hook(".git/hooks/post-index-change", evil) }, []string{"add", "-A"}},
		"core.hooksPath": {func(w *world, evil string) {
			w.hook("hooks/post-index-change", evil)
			w.must("config", "core.hooksPath", w.repo+"/hooks")
		}, []string{"add", "-A"}},
		"filter.clean":   {func(w *world, evil string) { w.filter("clean", evil) }, []string{"add", "-A"}},
		"filter.process": {func(w *world, evil string) { w.filter("process", evil) }, []string{"add", "-A"}},
		"filter.smudge":  {func(w *world, evil string) { w.filter("smudge", evil) }, []string{"checkout-index", "-f", "a"}},
		"filter in info/attributes": {func(w *world, evil string) {
			w.filter("clean", evil)
			w.remove(".gitattributes")
			w.write(".git/info/attributes", "* filter=evil\n")
		}, []string{"add", "-A"}},
		"an included configuration": {func(w *world, evil string) {
			w.write("more", "[core]\n\tfsmonitor = "+evil+"\n")
			w.must("config", "include.path", "../more")
		}, []string{"status"}},
		"a worktree's configuration": {func(w *world, evil string) {
			w.must("config", "extensions.worktreeConfig", "true")
			w.must("config", "--worktree", "core.fsmonitor", evil)
		}, []string{"status"}},
		"diff.external": {func(w *world, evil string) { w.must("config", "diff.external", evil) }, []string{"diff"}},
		"diff.x.command": {func(w *world, evil string) {
			w.write(".gitattributes", "* diff=x\n")
			w.must("config", "diff.x.command", evil)
		}, []string{"diff"}},
		"diff.x.textconv": {func(w *world, evil string) {
			w.write(".gitattributes", "* diff=x\n")
			w.must("config", "diff.x.textconv", evil)
		}, []string{"diff"}},
		"a submodule's fsmonitor": {func(w *world, evil string) { w.submodule("core.fsmonitor", evil) }, []string{"status"}},
		"a submodule's filter": {func(w *world, evil string) {
			w.submodule("filter.evil.clean", evil)
			w.write("lib/.gitattributes", "* filter=evil\n")
			w.write("lib/a", "ONE\n")
		}, []string{"status"}},
		"a missing object": {func(w *world, evil string) {
			w.must("config", "extensions.partialClone", "origin")
			w.must("config", "remote.origin.url", "ext::"+evil)
			w.must("config", "remote.origin.promisor", "true")
			w.must("config", "protocol.ext.allow", "always")
			w.remove(".git/objects/" + w.must("rev-parse", "HEAD:a")[:2])
		}, []string{"diff"}},
		"core.alternateRefsCommand": {func(w *world, evil string) { w.must("config", "core.alternateRefsCommand", evil); w.alternate() }, []string{"fetch-pack", "--all", "."}},
		"an environment's diff":     {func(w *world, evil string) { w.env = append(w.env, "GIT_EXTERNAL_DIFF="+evil) }, []string{"diff"}},
		"an environment's settings": {func(w *world, evil string) {
			w.env = append(w.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0="+evil)
		}, []string{"status"}},
		"an environment's programs": {func(w *world, evil string) {
			_ = os.MkdirAll(w.home+"/exec", 0o700)
			_ = os.Symlink(evil, w.home+"/exec/git-evil")
			w.env = append(w.env, "GIT_EXEC_PATH="+w.home+"/exec")
		}, []string{"evil"}},
		"the user's filter": {func(w *world, evil string) {
			w.must("config", "--global", "filter.evil.clean", evil)
			w.write(".gitattributes", "* filter=evil\n")
		}, []string{"add", "-A"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "one\n")
			w.must("add", "-A")
			w.must("commit", "-qm", "first")
			mark := w.home + "/mark"
			evil := w.home + "/evil"
			if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> "+mark+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			attack.set(w, evil)
			w.write("b", "new\n")
			w.write("a", "two\n") // what looks changed is read
			if out, _ := w.gitIn(w.repo, attack.plain...); !exists(mark) && !slowAttack[name] {
				t.Fatalf("the attack does not work with plain git: %s", out)
			}
			if err := os.Remove(mark); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}

			w.start()
			w.write("a", "three\n")
			w.write("lib/a", "changed again\n")
			w.end()
			w.write("later", "1\n")
			var out bytes.Buffer
			d := w.open(true)
			if err := d.Patch(t.Context(), &out, true); err != nil {
				t.Errorf("patch: %v", err)
			}
			clone := t.TempDir() + "/clone"
			if out, err := exec.Command("cp", "-a", w.repo, clone).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, out)
			}
			if _, err := d.Undo(t.Context()); err != nil {
				t.Logf("undo: %v", err)
			}
			if err := w.open(false).Apply(t.Context(), clone); err != nil {
				t.Logf("apply: %v", err) // the files there are as changed
			}
			if data, err := os.ReadFile(mark); err == nil {
				t.Errorf("a program of the repository was started: %s", data)
			}
		})
	}
}

// slowAttack has the attacks that plain git of this version is immune to.
var slowAttack = map[string]bool{"core.alternateRefsCommand": true}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (w *world) hook(name, evil string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.repo+"/"+name), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(evil, w.repo+"/"+name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) filter(kind, evil string) {
	w.write(".gitattributes", "* filter=evil\n")
	w.must("config", "filter.evil."+kind, evil)
}

func (w *world) submodule(setting, evil string) {
	w.must("clone", "-q", ".", w.home+"/lib")
	w.must("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.home+"/lib", "lib")
	w.must("commit", "-qm", "lib")
	if out, err := w.gitIn(w.repo+"/lib", "config", setting, evil); err != nil {
		w.t.Fatal(out)
	}
}

func (w *world) alternate() {
	w.must("clone", "-q", "--bare", ".", w.home+"/other.git")
	w.write(".git/objects/info/alternates", w.home+"/other.git/objects\n")
}

// A repository cannot have another folder looked at than its own.
func TestRepositoryCannotPointElsewhere(t *testing.T) {
	w := newWorld(t)
	w.must("config", "core.worktree", w.home)
	w.env = append(w.env, "GIT_DIR="+w.home, "GIT_WORK_TREE="+w.home, "GIT_INDEX_FILE="+w.home+"/i")
	if err := os.WriteFile(w.home+"/secret", []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.write("a", "1\n")
	w.end()
	if r := w.record(); r.Root != w.repo || r.Files != 1 {
		t.Errorf("record %+v", r)
	}
	if exists(w.home + "/i") {
		t.Error("the caller's index was written")
	}
}

// A file that git should read and that would keep it waiting is not waited for.
func TestStrangeFilesOfARepository(t *testing.T) {
	for _, name := range []string{"index", "info/exclude"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "1\n")
			w.must("add", "-A")
			w.remove(".git/" + name)
			if err := exec.Command("mkfifo", filepath.Join(w.repo, ".git", filepath.FromSlash(name))).Run(); err != nil {
				t.Skip("mkfifo: ", err)
			}
			w.set().Start(t.Context(), w.repo, nil)
			if r := w.record(); r.StartTree != "" || !strings.Contains(r.Reason, "FIFO") {
				t.Errorf("record %+v", r)
			}
		})
	}
}

// An agent can keep git waiting with a FIFO, for a while: that is said, and git is gone.
func TestAgentKeepsGitWaiting(t *testing.T) {
	for _, name := range []string{".gitignore", ".gitattributes"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "1\n")
			w.start()
			w.write("a", "2\n")
			if err := exec.Command("mkfifo", filepath.Join(w.repo, name)).Run(); err != nil {
				t.Skip("mkfifo: ", err)
			}
			s := w.set()
			s.time = 300 * time.Millisecond
			s.End(t.Context())
			if r := w.record(); r.EndTree != "" || r.Reason != "git took too long" {
				t.Errorf("record %+v", r)
			}
			// A writer that does not wait finds a reader, if there is one.
			if f, err := os.OpenFile(filepath.Join(w.repo, name), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				f.Close()
				t.Error("something still reads")
			}
		})
	}
}

// An agent cannot hide what it wrote by attributes, and names do not deceive.
func TestAttributesHideNothing(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one\n")
	w.start()
	w.write("a", "two\n")
	w.write(".gitattributes", "* -diff -text binary\n")
	r := w.end()
	if text := w.patch(false); !strings.Contains(text, "-one\n+two\n") || r.Added != 2 || r.Deleted != 1 {
		t.Errorf("%+v: %s", r.Figures, text)
	}
}
