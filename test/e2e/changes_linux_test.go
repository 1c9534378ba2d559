package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newRepository is a user in a repository of theirs, with the agent "edit" whose prompt is
// a shell script.
func newRepository(t *testing.T) *user {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not in PATH, and without it there is nothing to test")
	}
	u := newUser(t)
	config := "[agents.edit]\nadapter = 'command'\ncommand = 'eval \"$(cat)\"'\n"
	if err := errors.Join(os.MkdirAll(u.config, 0o700), os.WriteFile(filepath.Join(u.config, "config.toml"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	u.dir = filepath.Join(u.dir, "repo")
	if err := os.Mkdir(u.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	u.git("init", "-q")
	u.git("config", "user.email", "e@example.com")
	u.git("config", "user.name", "n")
	u.write("a", "one\ntwo\n")
	u.write("gone", "x\n")
	u.git("add", "-A")
	u.git("commit", "-qm", "first")
	return u
}

func (u *user) git(args ...string) string {
	u.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (u *user) write(name, text string) {
	u.t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o644); err != nil {
		u.t.Fatal(err)
	}
}

// try runs a command that may fail.
func (u *user) try(args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	cmd := u.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		u.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// until waits for what a test cannot go on without.
func (u *user) until(what string, met func() bool) {
	u.t.Helper()
	for end := time.Now().Add(time.Minute); !met(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatalf("%s: not within a minute", what)
		}
	}
}

func (u *user) has(name string) func() bool {
	return func() bool {
		_, err := os.Stat(filepath.Join(u.dir, name))
		return err == nil
	}
}

// edit is what the agent does in these tests: three files, +2 −1.
const edit = "echo three >> a; rm gone; echo new > new; echo done"

// A run says at its end what it changed; diff shows it, and undo takes it back.
func TestDiffAndUndo(t *testing.T) {
	u := newRepository(t)
	index := u.git("ls-files", "--stage", "--debug")
	out, said, code := u.try("run", "edit", edit, "--name", "one")
	if code != 0 || out != "done\n" || !strings.Contains(said, "amux: 3 files +2 −1 · amux diff ") {
		t.Fatalf("code %d: %q, %q", code, out, said)
	}
	if now := u.git("ls-files", "--stage", "--debug"); now != index {
		t.Errorf("the index was %s, and is %s", index, now)
	}
	if patch := u.amux("diff", "one"); !strings.Contains(patch, "+three\n") || !strings.Contains(patch, "deleted file mode") {
		t.Errorf("patch %s", patch)
	}
	if names := u.amux("diff", "one", "--name-only"); names != "a\ngone\nnew\n" {
		t.Errorf("names %q", names)
	}
	if stat := u.amux("diff", "one", "--stat"); stat != " a    | 1 +\n gone | 1 -\n new  | 1 +\n 3 files +2 −1\n" {
		t.Errorf("stat %q", stat)
	}
	var shown struct {
		Live           bool
		Added, Deleted int
		Files          []struct{ Path, Status string }
	}
	if err := json.Unmarshal([]byte(u.amux("diff", "one", "--json")), &shown); err != nil || shown.Live || shown.Added != 2 || shown.Deleted != 1 || len(shown.Files) != 3 {
		t.Errorf("%+v, %v", shown, err)
	}
	var inspected struct {
		Changes struct {
			StartTree string `json:"start_tree"`
			EndTree   string `json:"end_tree"`
			Files     int
		}
	}
	if err := json.Unmarshal([]byte(u.amux("inspect", "one", "--json")), &inspected); err != nil || inspected.Changes.StartTree == "" || inspected.Changes.EndTree == "" || inspected.Changes.Files != 3 {
		t.Errorf("%+v, %v", inspected, err)
	}
	u.write("new", "mine\n")
	if _, said, code := u.try("undo", "one"); code != 1 || !strings.Contains(said, "changed after the run: new") {
		t.Errorf("undo of what was changed since: code %d, %s", code, said)
	}
	u.write("new", "new\n")
	u.amux("undo", "one")
	if status := u.git("status", "--porcelain"); status != "" {
		t.Errorf("after undo: %s", status)
	}
	u.amux("diff", "one", "--apply", ".")
	if status := u.git("status", "--porcelain"); status != " M a\n D gone\n?? new\n" {
		t.Errorf("applied again: %q", status)
	}
	if _, said, code := u.try("diff", "one", "--apply", "."); code != 1 || !strings.Contains(said, "do not fit") {
		t.Errorf("applied twice: code %d, %s", code, said)
	}
}

// Whoever watches a run from elsewhere, or waits for it, hears what it changed too.
func TestChangesAreNamedWhereARunIsWatched(t *testing.T) {
	u := newRepository(t)
	u.amux("run", "-d", "edit", "sleep 2; "+edit, "--name", "one")
	attached := make(chan string, 1)
	go func() {
		_, said, _ := u.try("attach", "one")
		attached <- said
	}()
	_, waited, code := u.try("wait", "one")
	for what, said := range map[string]string{"wait": waited, "attach": <-attached, "wait again": second(u.try("wait", "one"))} {
		if code != 0 || !strings.Contains(said, "amux: 3 files +2 −1 · amux diff ") {
			t.Errorf("%s: code %d, %s", what, code, said)
		}
	}
}

func second(_, said string, _ int) string { return said }

// What is not recorded says so, and why.
func TestDiffOfNothing(t *testing.T) {
	u := newRepository(t)
	if _, said, _ := u.try("run", "edit", "echo x >> a", "--no-changes", "--name", "off"); strings.Contains(said, "amux diff") {
		t.Errorf("it was recorded: %s", said)
	}
	u.amux("run", "edit", "true", "--name", "still")
	if out := u.amux("diff", "still"); out != "" {
		t.Errorf("a run that changed nothing: %q", out)
	}
	u.dir = filepath.Dir(u.dir)
	u.amux("run", "edit", "echo x > a", "--name", "outside")
	u.amux("run", "demo", "hi", "--name", "demo")
	for name, want := range map[string]string{"off": "were not recorded", "outside": "is in no git work tree", "demo": "changes nothing"} {
		if _, said, code := u.try("diff", name); code != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: code %d, %s", name, code, said)
		}
		if _, _, code := u.try("undo", name); code != 1 {
			t.Errorf("undo %s: code %d", name, code)
		}
	}
}

// The end of a run is recorded however the run comes to it: amux killed, the server killed,
// both with nobody left.
func TestChangesOfKilledRuns(t *testing.T) {
	const script = "echo three >> a; touch changed; until [ -e ../go ]; do sleep 0.05; done; echo late > late"
	for name, test := range map[string]struct {
		detach bool
		kill   func(u *user, host *exec.Cmd)
		want   string // names of changed files
	}{
		"amux killed":   {kill: func(u *user, host *exec.Cmd) { _ = host.Process.Kill(); _ = host.Wait() }, want: "a\nchanged\n"},
		"server killed": {detach: true, kill: func(u *user, _ *exec.Cmd) { _ = syscall.Kill(u.server(), syscall.SIGKILL) }, want: "a\nchanged\nlate\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newRepository(t)
			args := []string{"run", "edit", script, "--name", "one"}
			var host *exec.Cmd
			if test.detach {
				u.amux(append(args, "-d")...)
			} else {
				host = u.command(args...)
				if err := host.Start(); err != nil {
					t.Fatal(err)
				}
			}
			u.until("the agent's first change", u.has("changed"))
			if names := u.amux("diff", "one", "--name-only"); names != "a\nchanged\n" {
				t.Errorf("while it runs: %q", names)
			}
			if _, said, code := u.try("undo", "one"); code != 1 || !strings.Contains(said, "has not ended") {
				t.Errorf("undo while it runs: code %d, %s", code, said)
			}
			test.kill(u, host)
			if err := os.WriteFile(filepath.Join(u.dir, "..", "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			u.try("wait", "one")
			var info struct {
				Changes struct {
					EndTree string `json:"end_tree"`
				}
			}
			u.until("the tree of the end", func() bool {
				return json.Unmarshal([]byte(u.amux("inspect", "one", "--json")), &info) == nil && info.Changes.EndTree != ""
			})
			if names := u.amux("diff", "one", "--name-only"); names != test.want {
				t.Errorf("at the end: %q", names)
			}
			u.write("after", "the run\n")
			if names := u.amux("diff", "one", "--name-only"); names != test.want {
				t.Errorf("later: %q", names)
			}
		})
	}
}

// amux is killed at any moment of a run. Its changes are there, or it is said why not; the
// repository is as it was, and nobody works on it any more.
func TestChangesWithKillsAtRandom(t *testing.T) {
	u := newRepository(t)
	u.git("update-index", "--refresh")
	state := func() string {
		return u.git("ls-files", "--stage", "--debug") + u.git("for-each-ref") + u.git("fsck", "--strict")
	}
	before := state()
	began := time.Now()
	u.amux("run", "edit", "true", "--name", "whole")
	took := time.Since(began)
	shown := 0
	for i := range 16 {
		name := fmt.Sprintf("k%d", i)
		cmd := u.command("run", "edit", fmt.Sprintf("echo x > f%d", i), "--name", name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(took*time.Duration(i)/12, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed, or in time
		timer.Stop()
		u.amux("ps", "-a") // finishes the records of dead hosts
		out, said, code := u.try("diff", name, "--name-only")
		switch {
		case code == 0 && (out == "" || out == fmt.Sprintf("f%d\n", i)):
			shown++
		case code == 1 && strings.Contains(said, "not recorded"), strings.Contains(said, "there is no run"):
		default:
			t.Errorf("kill %d: code %d, %q, %s", i, code, out, said)
		}
	}
	t.Logf("%d of 16 have changes to show", shown)
	if after := state(); after != before {
		t.Errorf("the repository was %s, and is %s", before, after)
	}
	u.until("the end of all git processes", func() bool { return !u.gitWorks() })
}

// gitWorks reports whether a git process of amux's is there.
func (u *user) gitWorks() bool {
	u.t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(found) == 0 {
		u.t.Fatalf("no processes: %v", err)
	}
	for _, path := range found {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("GIT_DIR="+u.config)) {
			return true
		}
	}
	return false
}

// A git that waits forever ends with amux, also when that is killed.
func TestHangingGitEndsWithAmux(t *testing.T) {
	u := newRepository(t)
	if err := syscall.Mkfifo(filepath.Join(u.dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := u.command("run", "edit", "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u.until("git at work", u.gitWorks)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	u.until("the end of git", func() bool { return !u.gitWorks() })
}

// Several runs in one repository at once each have their changes, and the repository is as
// git left it.
func TestChangesOfManyRuns(t *testing.T) {
	u := newRepository(t)
	var hosts []*exec.Cmd
	for i := range 5 {
		cmd := u.command("run", "edit", fmt.Sprintf("echo x > f%d", i), "--name", fmt.Sprintf("r%d", i), "--quiet")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, cmd)
	}
	for i, cmd := range hosts {
		if err := cmd.Wait(); err != nil {
			t.Errorf("run %d: %v", i, err)
		}
	}
	for i := range hosts {
		if names := u.amux("diff", fmt.Sprintf("r%d", i), "--name-only"); !strings.Contains(names, fmt.Sprintf("f%d\n", i)) {
			t.Errorf("run %d: %q", i, names)
		}
	}
	if out := u.git("fsck", "--strict"); strings.Contains(out, "error") {
		t.Errorf("git fsck: %s", out)
	}
}
