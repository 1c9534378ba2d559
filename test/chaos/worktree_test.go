//go:build linux

package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/agents"
)

// forest is a user whose agents work in worktrees of one repository, with commands of the
// amux that was built.
type forest struct {
	t                        *testing.T
	dice                     *rand.Rand
	root, repo, config, amux string
	env                      []string
	before                   map[string]string // of the repository, when the user has last changed it
	kills, merges            int
	outcomes, used           map[string]int
}

// trees are the names of the worktrees. An agent numbers its lines in the folder of that
// name: first in one of five files, then in log, then in the user's ledger.
var trees = []string{"w0", "w1", "w2", "w3"}

const work = `n=$(($(wc -l < NAME/log || echo 0) + 0)); mkdir -p NAME; end=$((n + COUNT))
while [ $n -lt $end ]; do n=$((n + 1)); echo $n >> NAME/f$((n % 5)); echo $n >> NAME/log; echo $n >> LEDGER/NAME
if [ $((n % 7)) = 0 ]; then git add -A; git commit -qm $n; fi; sleep 0.02; done 2>/dev/null`

func newForest(t *testing.T, dice *rand.Rand) *forest {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not in PATH, and without it there is nothing to test")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "trees")
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &forest{t: t, dice: dice, root: root, repo: root + "/repo", config: root + "/config", amux: bin + "/amux", outcomes: map[string]int{}, used: map[string]int{}}
	if _, err := os.Stat(f.amux); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	for _, dir := range []string{f.repo, f.config, root + "/tmp", root + "/run", root + "/ledger"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.env = []string{
		"HOME=" + root, "AGENT_MUX_CONFIG_DIR=" + f.config, "XDG_RUNTIME_DIR=" + root + "/run", "TMPDIR=" + root + "/tmp", "PATH=" + os.Getenv("PATH"),
		"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e",
	}
	f.write(f.config+"/config.toml", "[agents.edit]\nadapter = 'command'\ncommand = 'eval \"$(cat)\"'\n")
	f.git("init", "-q", "-b", "main")
	f.git("config", "gc.auto", "0")
	for i := range 50 {
		f.write(fmt.Sprintf("%s/src/%d", f.repo, i), strings.Repeat(strconv.Itoa(i)+"\n", 500))
	}
	f.git("add", "-A")
	f.git("commit", "-qm", "first")
	f.before = f.state()
	t.Cleanup(func() {
		f.killAll()
		if !t.Failed() {
			os.RemoveAll(root)
		}
	})
	return f
}

func (f *forest) write(path, text string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *forest) git(args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = f.repo, f.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (f *forest) command(args ...string) *exec.Cmd {
	cmd := exec.Command(f.amux, args...)
	cmd.Dir, cmd.Env = f.repo, f.env
	cmd.WaitDelay = time.Second
	return cmd
}

// must runs a command that nobody kills.
func (f *forest) must(args ...string) string {
	f.t.Helper()
	cmd := f.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		f.t.Fatalf("amux %v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// state is the repository, byte for byte: its work tree but for the folders of the agents,
// and .git but for objects, which agents may add, and what belongs to worktrees.
func (f *forest) state() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(f.repo, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(f.repo, path)
		for _, own := range append([]string{".git/objects", ".git/worktrees", ".git/refs/heads/amux", ".git/logs/refs/heads/amux"}, trees...) {
			if rel == own {
				return fs.SkipDir
			}
		}
		if e.IsDir() {
			all[rel] = "folder"
			return nil
		}
		data, err := os.ReadFile(path)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func (f *forest) sameRepository() {
	f.t.Helper()
	after := f.state()
	for name, text := range after {
		if old, ok := f.before[name]; !ok || old != text {
			f.t.Errorf("%s of the repository was changed or is new", name)
		}
	}
	for name := range f.before {
		if _, ok := after[name]; !ok {
			f.t.Errorf("%s of the repository is gone", name)
		}
	}
}

// act starts a command as a user might.
func (f *forest) act() *exec.Cmd {
	name := trees[f.dice.IntN(len(trees))]
	f.used[name]++
	script := strings.NewReplacer("NAME", name, "COUNT", strconv.Itoa(1+f.dice.IntN(40)), "LEDGER", f.root+"/ledger").Replace(work)
	args := [][]string{
		{"run", "edit", script, "--worktree=" + name}, {"run", "edit", script, "--worktree=" + name}, {"run", "edit", script, "--worktree=" + name, "-d"},
		{"run", "edit", "true", "--worktree", "-d"}, {"run", "--each", "edit,edit", "true"},
		{"worktree", "merge", name}, {"worktree", "drop", name}, {"merge and drop", name}, {"merge and drop", name},
		{"worktree", "prune"}, {"worktree", "list"}, {"worktree", "diff", name}, {"clean"},
	}[f.dice.IntN(13)]
	cmd := f.command(args...)
	if args[0] == "merge and drop" {
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", f.amux + " worktree merge " + name + " && " + f.amux + " worktree drop " + name}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	return cmd
}

// processes are those of this user.
func (f *forest) processes() []agents.Process {
	return slices.DeleteFunc(agents.Processes(), func(p agents.Process) bool {
		return p.PID == os.Getpid() || p.State == "Z" || !strings.Contains(p.Command+p.Environ, f.root+"/")
	})
}

// kill kills one process, or all that there are.
func (f *forest) kill() {
	all := f.processes()
	if len(all) == 0 {
		return
	}
	f.kills++
	if f.dice.IntN(3) > 0 {
		i := f.dice.IntN(len(all))
		all = all[i : i+1]
	}
	for _, p := range all {
		if now, alive := agents.ReadProcess(p.PID); alive && now.Start == p.Start {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
			f.outcomes["killed "+filepath.Base(strings.Fields(strings.ReplaceAll(p.Command, "\x00", " ") + " ?")[0])]++
		}
	}
}

func (f *forest) killAll() {
	for range 100 {
		all := f.processes()
		if len(all) == 0 {
			return
		}
		for _, p := range all {
			if now, alive := agents.ReadProcess(p.PID); alive && now.Start == p.Start {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// tree is a worktree as amux lists it.
type tree struct {
	Name, Path, Run, Strange string
	Dirty                    bool
}

func (f *forest) list() map[string]tree {
	f.t.Helper()
	var list []tree
	if err := json.Unmarshal([]byte(f.must("worktree", "list", "--json")), &list); err != nil {
		f.t.Fatal(err)
	}
	all := map[string]tree{}
	for _, tr := range list {
		all[tr.Name] = tr
	}
	return all
}

// lines are those of a file, and the largest number in them.
func (f *forest) lines(path string) (n, largest int) {
	f.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		number, _ := strconv.Atoi(strings.TrimSpace(line))
		n, largest = n+1, max(largest, number)
	}
	return n, largest
}

// log reads that of a worktree's name. Its lines are numbered from 1: if two agents had
// worked there at a time, they were not.
func (f *forest) log(dir, name string) int {
	f.t.Helper()
	n, largest := f.lines(dir + "/" + name + "/log")
	if n != largest {
		f.t.Errorf("%s/%s: %d lines up to number %d", dir, name, n, largest)
	}
	return n
}

// check wants after a round that nothing was lost, nothing has leaked, and that the
// repository is as it was.
func (f *forest) check() {
	f.t.Helper()
	list := f.list()
	f.sameRepository()
	for _, name := range trees {
		_, acked := f.lines(f.root + "/ledger/" + name)
		merged := f.log(f.repo, name)
		got := merged
		if tr, ok := list[name]; ok {
			got = max(got, f.log(tr.Path, name))
		}
		if got < acked {
			f.t.Errorf("%s: %d lines are there, and %d were written", name, got, acked)
		}
		// A merge is done or it is not: log and the other files agree.
		others := 0
		for i := range 5 {
			n, _ := f.lines(fmt.Sprintf("%s/%s/f%d", f.repo, name, i))
			others += n
		}
		if others < merged || others > merged+f.used[name] { // an agent that is killed leaves a line that is not in log
			f.t.Errorf("%s was merged in part: %d lines of %d", name, others, merged)
		}
	}
	for _, dir := range []string{f.repo + "/.git/worktrees", f.repo + "/.git/refs/heads/amux", f.config + "/worktrees"} {
		entries, _ := os.ReadDir(dir) // there may be none
		for _, e := range entries {
			name := strings.TrimSuffix(e.Name(), ".lock")
			if _, ok := list[name]; !ok && name != ".state" {
				// A run that is being started may have made it since.
				if _, ok := f.list()[name]; !ok {
					if _, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil {
						f.t.Errorf("%s is left in %s", e.Name(), dir)
					}
				}
			}
		}
	}
	if strings.TrimSpace(f.git("status", "--porcelain")) != "" {
		f.merges++
		f.git("add", "-A")
		f.git("commit", "-qm", "merged")
	}
	f.before = f.state()
}

// Everything is killed at random while worktrees are made, used, merged and dropped: none
// that is in use or holds anything is lost, none leaks, and the repository stays as it is.
// AMUX_CHAOS has it go on for 200 kills.
func TestWorktreesInChaos(t *testing.T) {
	kills := 20
	if os.Getenv("AMUX_CHAOS") != "" {
		kills = 200
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := newForest(t, rand.New(rand.NewPCG(seed, 0)))
	for round := 0; f.kills < kills && !t.Failed(); round++ {
		var acts []*exec.Cmd
		for range 1 + f.dice.IntN(4) {
			acts = append(acts, f.act())
		}
		time.Sleep(time.Duration(f.dice.IntN(400)) * time.Millisecond) // the moment of the kill
		f.kill()
		for _, cmd := range acts {
			what := cmd.Args[1]
			switch what {
			case "worktree":
				what += " " + cmd.Args[2]
			case "-c":
				what = "merge and drop"
			}
			if err := cmd.Wait(); err == nil {
				f.outcomes[what+" done"]++
			} else {
				f.outcomes[what+" failed"]++
			}
		}
		f.check()
	}
	for end := time.Now().Add(2 * time.Minute); f.must("ps", "-q") != "" && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	f.check()
	f.must("worktree", "prune")
	dirty := 0
	for _, tr := range f.list() {
		if !tr.Dirty || tr.Run != "" {
			t.Errorf("not pruned: %+v", tr)
		}
		dirty++
		f.must("worktree", "drop", "--discard", tr.Name)
	}
	f.sameRepository()
	for _, dir := range []string{f.repo + "/.git/worktrees", f.repo + "/.git/refs/heads/amux", f.repo + "/.git/logs/refs/heads/amux"} {
		if entries, err := os.ReadDir(dir); err == nil {
			t.Errorf("%s is left with %v", dir, entries)
		}
	}
	if entries, _ := os.ReadDir(f.config + "/worktrees"); len(entries) > 1 {
		t.Errorf("left %v", entries)
	}
	t.Logf("%d kills, %d rounds with a merge, %d dirty at the end: %v", f.kills, f.merges, dirty, f.outcomes)
}
