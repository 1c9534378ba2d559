package place

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/amux-dev/amux/internal/process"
)

// What a run changed at another machine can be seen while it goes on, and is here when it has
// ended, whoever dies meanwhile.
func TestChangesOverSSH(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not in PATH, and without it no changes are recorded")
	}
	v := at(t, `read name; echo one >>old; echo two >new-$name; echo started; while sleep 0.05; do [ -e ~/go-$name ] && rm gone && exit 0; done`)
	work := filepath.Join(v.server.Home, "work")
	git := func(dir string, words ...string) string {
		t.Helper()
		return v.Sh(nil, append([]string{"git", "-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.com"}, words...)...)
	}
	again := func() {
		t.Helper()
		if err := os.RemoveAll(work); err != nil {
			t.Fatal(err)
		}
		git(v.server.Home, "init", "-q", "work")
		for _, name := range []string{"old", "gone"} {
			if err := os.WriteFile(filepath.Join(work, name), []byte("line\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git(work, "add", "-A")
		git(work, "commit", "-qm", "first")
	}
	finish := func(name string) {
		if err := os.WriteFile(filepath.Join(v.server.Home, "go-"+name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box := "ssh:" + v.server.Host
	for _, name := range []string{"quiet", "server", "relay"} {
		again()
		clone := filepath.Join(t.TempDir(), "clone")
		git(v.server.Home, "clone", "-q", work, clone)
		id := v.detached(box, name)
		v.Until("the agent is there", func() bool { return strings.Contains(v.Sh(nil, v.Amux, "logs", "--json", id), "started") })
		if said := v.Sh(nil, v.Amux, "diff", id); !strings.Contains(said, "+++ b/new-"+name) || !strings.Contains(said, "+one") || strings.Contains(said, "gone") {
			t.Errorf("%s: while it goes on: %s", name, said)
		}
		switch name {
		case "quiet": // and for a moment the machine does not answer
			server := process.ID{PID: v.server.PID()}
			server.Start, _ = process.Start(server.PID)
			_, _ = process.Signal(server, syscall.SIGSTOP)
			said, err := v.Try(nil, v.Amux, "diff", id)
			_, _ = process.Signal(server, syscall.SIGCONT)
			if err == nil || !strings.Contains(said, box+" cannot be reached: ") || strings.Count(strings.TrimSpace(said), "\n") > 1 {
				t.Errorf("%v: %s", err, said)
			}
		case "server":
			v.KillServe()
		case "relay":
			kill(t, v.here(id)) // which ends a detached run there, and its end is fetched
		}
		if name != "relay" {
			finish(name)
		}
		v.end(id)
		v.left(id)
		if err := os.RemoveAll(work); err != nil {
			t.Fatal(err)
		}
		said := v.Sh(nil, v.Amux, "diff", id)
		if !strings.Contains(said, "+++ b/new-"+name) || !strings.Contains(said, "+one") || strings.Contains(said, "gone") != (name != "relay") {
			t.Errorf("%s: after the end: %s", name, said)
		}
		var info struct {
			Changes struct {
				Place, Root string
				Files       int
			}
		}
		if err := json.Unmarshal([]byte(v.Sh(nil, v.Amux, "inspect", "--json", id)), &info); err != nil {
			t.Fatal(err)
		}
		if c := info.Changes; c.Place != box || c.Root != work || c.Files != 2 && c.Files != 3 {
			t.Errorf("%s: inspect says %+v", name, c)
		}
		v.Sh(nil, v.Amux, "diff", id, "--apply", clone)
		if data, err := os.ReadFile(filepath.Join(clone, "new-"+name)); err != nil || string(data) != "two\n" {
			t.Errorf("%s: applied %q, %v", name, data, err)
		}
		if said, err := v.Try(nil, v.Amux, "undo", id); err == nil || !strings.Contains(said, "its files are at "+box) {
			t.Errorf("%s: undo: %v: %s", name, err, said)
		}
		if _, err := os.Stat(filepath.Join(v.here(id), "left")); err == nil {
			t.Errorf("%s: what was sent is kept twice", name)
		}
	}

	// A folder in no work tree.
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	finish("plain")
	if err := os.WriteFile(filepath.Join(work, "gone"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := v.detached(box, "plain")
	v.end(id)
	if said, err := v.Try(nil, v.Amux, "diff", id); err == nil || !strings.Contains(said, work+" at "+box+" is in no git work tree") {
		t.Errorf("no work tree: %v: %s", err, said)
	}
}
