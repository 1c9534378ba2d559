package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gitState is what git has of a repository, but for the times in its index.
func (u *user) gitState() string {
	return u.git("for-each-ref") + u.git("ls-files", "--stage") + u.git("config", "--list", "--local") + u.git("worktree", "list") + u.git("status", "--porcelain")
}

// A run works in a worktree, in the foreground and detached; its changes are shown, merged,
// and it is dropped. The repository is as it was but for the merged files.
func TestWorktree(t *testing.T) {
	u := newRepository(t)
	before := u.gitState()
	out, said, code := u.try("run", "edit", edit+"; pwd", "--worktree=one", "--name", "first")
	dir := filepath.Join(u.config, "worktrees", "one")
	if code != 0 || !strings.HasSuffix(out, dir+"\n") || !strings.Contains(said, "amux: worktree one: "+dir) || !strings.Contains(said, "amux worktree merge one") {
		t.Fatalf("code %d: %q, %q", code, out, said)
	}
	if got := u.git("status", "--porcelain"); got != "" {
		t.Errorf("the user's files: %s", got)
	}
	for _, stat := range []string{u.amux("diff", "first", "--stat"), u.amux("worktree", "diff", "one", "--stat")} {
		if !strings.HasSuffix(stat, " 3 files +2 −1\n") {
			t.Errorf("stat %q", stat)
		}
	}
	id := strings.TrimSpace(u.amux("run", "edit", "echo more >> new; until [ -e go ]; do sleep 0.01; done; rm go", "--worktree=one", "-d"))
	u.until("the second run", func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "new"))
		return strings.HasSuffix(string(data), "more\n")
	})
	for _, args := range [][]string{{"drop", "--discard", "one"}, {"merge", "one"}} {
		if _, said, code := u.try(append([]string{"worktree"}, args...)...); code != 2 || !strings.Contains(said, "worktree one is in use by run "+id[len(id)-6:]) {
			t.Errorf("%v: code %d: %s", args, code, said)
		}
	}
	u.amux("worktree", "prune")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.amux("wait", id)
	if _, said, code := u.try("worktree", "drop", "one"); code != 2 || !strings.Contains(said, "3 changed files") {
		t.Errorf("code %d: %s", code, said)
	}
	var list []struct {
		Name  string
		Dirty bool
		Files int
	}
	if err := json.Unmarshal([]byte(u.amux("worktree", "list", "--json")), &list); err != nil || len(list) != 1 || !list[0].Dirty || list[0].Files != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	u.amux("worktree", "merge", "one")
	if got := u.git("status", "--porcelain"); got != " M a\n D gone\n?? new\n" {
		t.Errorf("merged %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(u.dir, "new")); err != nil || string(data) != "new\nmore\n" {
		t.Errorf("%q, %v", data, err)
	}
	u.amux("worktree", "drop", "one")
	u.git("checkout", "-q", ".")
	u.git("clean", "-qfd")
	if after := u.gitState(); after != before {
		t.Errorf("the repository was\n%s\nand is\n%s", before, after)
	}
	if again := u.amux("diff", "first", "--stat"); !strings.HasSuffix(again, " 3 files +2 −1\n") {
		t.Errorf("after the drop: %q", again)
	}
}

// One prompt for several agents, and their results side by side with a check of each.
func TestEachAndCompare(t *testing.T) {
	u := newRepository(t)
	prompt := `echo "$AMUX_RUN_ID" > id; case $PWD in *-2) exit 3;; esac; echo ok > good`
	out, said, code := u.try("run", "--each", "edit,edit", "--worktree=w", "--tag", "t", prompt)
	if code == 0 || strings.Count(out, "\n") != 3 || !strings.Contains(out, "w-edit-2") || !strings.Contains(said, "amux compare ") {
		t.Fatalf("code %d: %s%s", code, out, said)
	}
	out = u.amux("compare", "--tag", "t", "--check", "sleep 1000 & test -e good || { echo no good; exit 7; }")
	var bad, good bool
	for line := range strings.Lines(out) {
		bad = bad || strings.Contains(line, "w-edit-2") && strings.HasSuffix(line, "exit 7\n") && strings.Contains(line, "1 file +1 −0")
		good = good || strings.Contains(line, "w-edit ") && strings.HasSuffix(line, "ok\n") && strings.Contains(line, "2 files +2 −0")
	}
	if !bad || !good {
		t.Error(out)
	}
	var rows []struct {
		Worktree string
		Check    *struct {
			Output   string
			TimedOut bool `json:"timed_out"`
		}
	}
	text := u.amux("compare", "--tag", "t", "--json", "--check-time", "1s", "--check", "echo begun; sleep 1000")
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) != 2 || !rows[0].Check.TimedOut || rows[0].Check.Output != "begun\n" {
		t.Errorf("%s, %v", text, err)
	}
	u.amux("worktree", "drop", "--discard", "w-edit", "w-edit-2")
	if text = u.amux("compare", "--tag", "t", "--check", "true"); strings.Contains(text, "CHECK") {
		t.Error(text)
	}
	ids := strings.Fields(u.amux("run", "--each", "edit,edit", "-d", "true"))
	if len(ids) != 2 {
		t.Errorf("detached: %q", ids)
	}
	for _, id := range ids {
		u.amux("wait", id)
	}
	u.amux("worktree", "prune")
	if got := u.git("worktree", "list"); strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
}
