package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/agents"
)

// earlier are builds of amux that today's must get along with, from the history of
// this repository.
var earlier = []struct {
	name, commit  string
	conversations bool // it can begin one that is detached
	leaves        bool // its server makes room when its file is replaced
}{
	{name: "the first with a server", commit: "1a656f791d779989bfeb5c6072b964a5455d055d"},
	{name: "the first whose server makes room", commit: "57abafddb13033133413488e8c08129628920887", conversations: true, leaves: true},
}

// Server and shim of an earlier build go on with today's amux: its commands reach
// their runs, today's server takes them up with no event lost or told twice, by the
// plugin that they were started with, and what an old server cannot do it says.
func TestEarlierBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds amux of another day")
	}
	for _, e := range earlier {
		t.Run(e.name, func(t *testing.T) {
			bin := build(t, e.commit)
			t.Run("server", func(t *testing.T) { t.Parallel(); earlierServer(t, bin) })
			t.Run("shim", func(t *testing.T) { t.Parallel(); earlierShim(t, bin) })
			t.Run("foreground", func(t *testing.T) { t.Parallel(); earlierForeground(t, bin) })
			t.Run("plugin", func(t *testing.T) { t.Parallel(); earlierPlugin(t, bin) })
			if e.conversations {
				t.Run("conversation", func(t *testing.T) { t.Parallel(); earlierConversation(t, bin) })
			}
			if e.leaves {
				t.Run("replaced", func(t *testing.T) { t.Parallel(); replaced(t, bin) })
			}
		})
	}
}

// build is the folder of amux as it was at a commit. It is kept in .cache.
func build(t *testing.T, commit string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(root, ".cache", "earlier")
	bin := filepath.Join(kept, commit)
	if _, err := os.Stat(filepath.Join(bin, "amux")); err == nil {
		return bin
	}
	if out, err := exec.Command("git", "-C", root, "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("this checkout has no history with commit %s: %v %s", commit, err, out)
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	src, err := os.MkdirTemp("", "earlier")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(src)
	made, err := os.MkdirTemp(kept, "new")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(made)
	cmd := exec.Command("sh", "-c", `git -C "$1" archive "$2" >source.tar && tar -xf source.tar && exec sh tools/build.sh "$3"`, "sh", root, commit, made)
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO=go", "GOFLAGS=-buildvcs=false "+os.Getenv("GOFLAGS"), "VERSION=0.0.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, out)
	}
	if err := os.Rename(made, bin); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		t.Fatal(err)
	}
	return bin
}

// earlier runs a command with another build of amux.
func (u *user) earlier(bin string, args ...string) string {
	u.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "amux"), args...)
	cmd.Env, cmd.Dir = u.env, u.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("amux %s of another build: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// eventually waits until a run has told so.
func (u *user) eventually(id, mark string) {
	u.t.Helper()
	agents.Eventually(u.t, time.Minute, mark, func() bool {
		told, _ := os.ReadFile(filepath.Join(u.config, "runs", id, "events.jsonl"))
		return bytes.Contains(told, []byte(mark))
	})
}

// follower is amux logs -f --json.
type follower struct {
	u   *user
	id  string
	cmd *exec.Cmd
	out bytes.Buffer
}

func (u *user) follow(id string) *follower {
	u.t.Helper()
	f := &follower{u: u, id: id, cmd: u.command("logs", "-f", "--json", id)}
	f.cmd.Stdout, f.cmd.Stderr = &f.out, os.Stderr
	if err := f.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	return f
}

// wantWhole waits for the end of the run, and wants that it came to its own end with
// that many lines, each told and followed once, and told so again by a replay.
func (f *follower) wantWhole(lines int) {
	f.u.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			f.u.t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		_ = f.cmd.Process.Kill()
		f.u.t.Fatal("who follows does not come to the end")
	}
	f.u.amux("wait", f.id)
	f.u.wantEvents(f.id, lines, "completed")
	if told := f.u.events(f.id); told != f.out.String() {
		f.u.t.Errorf("who followed it has other events: %s", agents.Difference(f.out.String(), told))
	}
}

func (u *user) events(id string) string {
	u.t.Helper()
	told, err := os.ReadFile(filepath.Join(u.config, "runs", id, "events.jsonl"))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(told)
}

// wantEvents checks that the record of a run that has ended agrees with itself.
func (u *user) wantEvents(id string, lines int, state string) {
	u.t.Helper()
	told := u.events(id)
	agents.Comparable(u.t, []byte(told)) // numbered without a gap
	if n := strings.Count(told, `{"type":"run_end"`); n != 1 || !strings.Contains(told, `"state":"`+state+`"`) {
		u.t.Errorf("it has ended %d times, %s", n, told[max(0, len(told)-300):])
	}
	next := 0
	for text := bufio.NewScanner(strings.NewReader(told)); text.Scan(); {
		if _, delta, found := strings.Cut(text.Text(), `"delta":"line `); found {
			if !strings.HasPrefix(delta, fmt.Sprintf(`%d\n`, next%10+1)) {
				u.t.Fatalf("behind %d lines comes %s", next, delta)
			}
			next++
		}
	}
	if next != lines {
		u.t.Errorf("%d lines were told, want %d", next, lines)
	}
	if d := agents.Difference(u.amux("replay", id), told); d != "" {
		u.t.Errorf("replay: %s", d)
	}
	if left := agents.OfRun(id); len(left) > 0 {
		u.t.Errorf("left: %v", left)
	}
}

// ticking is a prompt for n times ten lines, each time within ten milliseconds and more.
func ticking(n int) string { return strings.Repeat("[lines:10][sleep:0.01]", n) }

// said waits until so many lines have been told.
func (u *user) said(id string, lines int) {
	u.t.Helper()
	agents.Eventually(u.t, time.Minute, fmt.Sprintf("%d lines", lines), func() bool {
		told, _ := os.ReadFile(filepath.Join(u.config, "runs", id, "events.jsonl"))
		return bytes.Count(told, []byte(`"delta":"line `)) >= lines
	})
}

func earlierServer(t *testing.T, bin string) {
	u := newUser(t)
	asking := u.earlier(bin, "run", "-d", "demo", "--approve", "ask", ticking(10)+"[approve]")
	server := u.server()
	if server == 0 {
		t.Fatal("there is no server")
	}
	followed := u.follow(asking)
	long := u.earlier(bin, "run", "-d", "demo", "[spawn:setsid][sleep:1000]")
	u.eventually(long, `"type":"tool_result"`)
	u.amux("pause", long)
	u.eventually(long, `"to":"paused"`)
	if list := u.amux("ps"); !strings.Contains(list, asking[20:]) || !strings.Contains(list, "paused") {
		t.Errorf("ps: %s", list)
	}
	u.amux("resume", long)
	u.amux("stop", long)
	u.eventually(long, `{"type":"run_end"`)
	u.wantEvents(long, 0, "canceled")
	interrupted := u.earlier(bin, "run", "-d", "demo", "[lines:10][sleep:1000]")
	u.said(interrupted, 10)
	u.amux("interrupt", interrupted)
	u.eventually(interrupted, `{"type":"run_end"`)
	u.wantEvents(interrupted, 10, "canceled")
	killed := u.earlier(bin, "run", "-d", "demo", "[spawn:daemon][sleep:1000]")
	u.eventually(killed, `"type":"tool_result"`)
	u.amux("kill", killed)
	u.eventually(killed, `{"type":"run_end"`)
	u.wantEvents(killed, 0, "canceled")

	// What is started now is started by the old server, which says what it cannot do.
	by := strings.TrimSpace(u.amux("run", "-d", "--approve", "deny", "demo", ticking(3)))
	u.amux("wait", by)
	u.wantEvents(by, 30, "completed")
	refused := u.command("run", "-d", "--approve", "deny", "--retry", "demo", "[say:hi]")
	var says bytes.Buffer
	refused.Stderr = &says
	if err := refused.Run(); err == nil || refused.ProcessState.ExitCode() != 2 ||
		!strings.Contains(says.String(), "does not understand the run") || !strings.Contains(says.String(), fmt.Sprintf("kill %d\n", server)) {
		t.Errorf("%v: %s", err, says.String())
	}
	if list := u.amux("ps", "-a"); strings.Count(list, "\n") != 6 { // five runs, and a heading
		t.Errorf("ps: %s", list)
	}
	if now := u.server(); now != server {
		t.Errorf("server %d has taken the place of %d", now, server)
	}
	u.eventually(asking, `"type":"approval_request"`)
	u.amux("approve", asking)
	followed.wantWhole(100)
}

// The old server is killed: today's takes up its run, whose shim is the old one.
func earlierShim(t *testing.T, bin string) {
	u := newUser(t)
	const lines = 3000
	id := u.earlier(bin, "run", "-d", "demo", "--approve", "ask", "[spawn:setsid]"+ticking(lines/10)+"[approve][ask:which?]")
	followed := u.follow(id)
	u.said(id, 200)
	server := u.server()
	for range 3 { // and those that come after it
		if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		before := server
		agents.Eventually(t, time.Minute, "another server", func() bool {
			server = u.server()
			return server != 0 && server != before
		})
	}
	u.amux("pause", id)
	u.eventually(id, `"to":"paused"`)
	u.amux("resume", id)
	u.eventually(id, `"type":"approval_request"`)
	u.amux("approve", id)
	u.eventually(id, `"type":"input_required"`)
	u.amux("answer", id, "this one")
	followed.wantWhole(lines)
}

// A run in another terminal, of the old build, is seen and stopped by today's.
func earlierForeground(t *testing.T, bin string) {
	u := newUser(t)
	cmd := exec.Command(filepath.Join(bin, "amux"), "run", "demo", "--name", "mine", "--json", "[spawn:daemon][approve]", "--approve", "ask")
	cmd.Env, cmd.Dir = u.env, u.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := agents.ReadUntil(out, `"type":"approval_request"`)
	go func() { _, _ = new(bytes.Buffer).ReadFrom(out) }()
	followed := u.follow("mine")
	u.amux("deny", "mine", "--reason", "not this")
	u.amux("wait", id)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the one in the foreground: %v", err)
	}
	followed.id = id
	followed.wantWhole(0)
	if !strings.Contains(u.events(id), "not this") {
		t.Error("the answer is not there")
	}
}

// Today's amux with a plugin of the old build.
func earlierPlugin(t *testing.T, bin string) {
	u := newUser(t)
	plugin := "others=" + filepath.Join(bin, "plugins", "others")
	cmd := u.command("run", "--plugin", plugin, "--name", "old", "demo", "--quiet", "[approve][spawn:setsid]", "--approve", "auto")
	out, err := cmd.Output()
	if err != nil || string(out) != "Done.\n" {
		t.Errorf("%q, %v", out, err)
	}
	id := strings.TrimSpace(u.amux("run", "-d", "--plugin", plugin, "demo", "--approve", "deny", ticking(100)))
	followed := u.follow(id)
	u.said(id, 50)
	if err := syscall.Kill(u.server(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	followed.wantWhole(1000)
}

// A conversation is gone on with, first through the old server, then through today's.
func earlierConversation(t *testing.T, bin string) {
	u := newUser(t)
	id := u.earlier(bin, "run", "-d", "-i", "demo", "[say:one]")
	u.eventually(id, `"type":"turn_end"`)
	u.amux("send", id, "[say:two]")
	u.eventually(id, `"delta":"two"`)
	if err := syscall.Kill(u.server(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.amux("send", id, "[say:three]")
	followed := u.follow(id)
	u.eventually(id, `"delta":"three"`)
	u.amux("stop", id)
	_ = followed.cmd.Wait()
	u.wantEvents(id, 0, "canceled")
}

// The file of the old server is replaced by today's: it makes room at the next run,
// and its own go on.
func replaced(t *testing.T, bin string) {
	u := newUser(t)
	place := filepath.Join(t.TempDir(), "bin")
	lay := func(from string) {
		t.Helper()
		if err := os.RemoveAll(place); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(place, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	lay(bin)
	for i, v := range u.env {
		if strings.HasPrefix(v, "PATH=") {
			u.env[i] = "PATH=" + place + ":" + os.Getenv("PATH")
		}
	}
	const lines = 2000
	id := strings.TrimSpace(u.amux("run", "-d", "--approve", "deny", "demo", ticking(lines/10)))
	server := u.server()
	today, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	lay(today)
	followed := u.follow(id)
	// The old one would not understand this.
	second := strings.TrimSpace(u.amux("run", "-d", "--approve", "deny", "--retry", "demo", ticking(3)))
	if now := u.server(); now == 0 || now == server {
		t.Errorf("server %d, after %d", now, server)
	}
	u.amux("wait", second)
	u.wantEvents(second, 30, "completed")
	followed.wantWhole(lines)
}
