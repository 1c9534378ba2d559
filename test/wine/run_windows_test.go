package wine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/test/wine"
)

// patience is how long may take what must happen.
const patience = 2 * time.Minute

// world is a user's: its own folders, and amux as it is built.
type world struct {
	t    *testing.T
	exe  string
	home string
	env  []string
}

// binEnv names the folder that amux was built in; without it that is bin.
const binEnv = "AMUX_TEST_BIN"

func newWorld(t *testing.T) *world {
	t.Helper()
	bin := os.Getenv(binEnv)
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	exe, err := filepath.Abs(filepath.Join(bin, "amux.exe"))
	if err == nil {
		_, err = os.Stat(exe)
	}
	if err != nil {
		t.Fatalf("amux is not built: %v; see: make wine", err)
	}
	home, err := os.MkdirTemp("", "amux-wine")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, exe: exe, home: home}
	// Not t.TempDir: Wine 8 cannot remove folders as it does.
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	for _, name := range []string{"config", "temp", "work"} {
		if err := os.Mkdir(filepath.Join(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+filepath.Join(home, "config"),
		"TEMP="+filepath.Join(home, "temp"), "TMP="+filepath.Join(home, "temp"), "AGENT_MUX_GRACE_PERIOD_MS=300")
	return w
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.exe, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = w.env, filepath.Join(w.home, "work"), 10*time.Second
	return cmd
}

// amux runs a command and gives stdout, stderr and exit code.
func (w *world) amux(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, words bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		w.t.Fatalf("amux %s: %v", args, err)
	}
	return out.String(), words.String(), code
}

// must is amux for what has to go well.
func (w *world) must(args ...string) string {
	w.t.Helper()
	out, words, code := w.amux(args...)
	if code != 0 {
		w.t.Fatalf("amux %s: code %d: %s", args, code, words)
	}
	return out
}

// running is a foreground run in a terminal of its own.
type running struct {
	w     *world
	cmd   *exec.Cmd
	id    string
	ended chan struct{}

	mu     sync.Mutex
	events []event
	raw    []string
	words  bytes.Buffer
}

type event struct {
	Type    string `json:"type"`
	RunID   string `json:"run_id"`
	To      string `json:"to"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Code    string `json:"code"`
	Delta   string `json:"delta"`
	Output  string `json:"output"`
	Message string `json:"message"`
}

// start starts amux run --json and returns when its run is running.
func (w *world) start(args ...string) *running {
	w.t.Helper()
	r := &running{w: w, cmd: w.command(append([]string{"run", "--json"}, args...)...), ended: make(chan struct{})}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	r.cmd.Stderr = &r.words
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			var e event
			if json.Unmarshal(line, &e) == nil {
				r.mu.Lock()
				r.events = append(r.events, e)
				r.raw = append(r.raw, string(line))
				r.mu.Unlock()
			}
			if err != nil {
				break
			}
		}
		_ = r.cmd.Wait()
	}()
	w.t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.ended })
	r.id = r.wait("the run to be running", func(e event) bool { return e.Type == "run_state" && e.To == "running" }).RunID
	return r
}

// seen are the events so far.
func (r *running) seen() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[:len(r.events):len(r.events)]
}

// wait waits for an event.
func (r *running) wait(what string, is func(event) bool) event {
	r.w.t.Helper()
	for since := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		over := closed(r.ended)
		for _, e := range r.seen() {
			if is(e) {
				return e
			}
		}
		if over || time.Since(since) > patience {
			r.w.t.Fatalf("%s did not happen; it said %s", what, r.words.String())
		}
	}
}

// code waits for the end of amux.
func (r *running) code() int {
	r.w.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.w.t.Fatalf("amux does not end")
	}
	return r.cmd.ProcessState.ExitCode()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var pidRule = regexp.MustCompile(`pid ([0-9]+)`)

// tree are the processes that the demo agent has left behind, and its shim.
func (r *running) tree(count int) (tree []process.ID, owner process.ID) {
	r.w.t.Helper()
	for range patience / (10 * time.Millisecond) {
		tree = nil
		for _, e := range r.seen() {
			if m := pidRule.FindStringSubmatch(e.Output); e.Type == "tool_result" && m != nil {
				pid, _ := strconv.Atoi(m[1])
				tree = append(tree, alive(r.w.t, pid))
			}
		}
		if len(tree) == count {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(tree) != count {
		r.w.t.Fatalf("%d processes were started, not %d: %s", len(tree), count, r.words.String())
	}
	info, err := shim.ReadInfo(filepath.Join(r.w.home, "config", "runs", r.id))
	if err != nil {
		r.w.t.Fatal(err)
	}
	return tree, alive(r.w.t, info.PID)
}

func alive(t *testing.T, pid int) process.ID {
	t.Helper()
	start, ok := process.Start(pid)
	if !ok {
		t.Fatalf("process %d is not there", pid)
	}
	return process.ID{PID: pid, Start: start}
}

func gone(t *testing.T, ids ...process.ID) {
	t.Helper()
	for _, id := range ids {
		for since := time.Now(); process.Alive(id); time.Sleep(5 * time.Millisecond) {
			if time.Since(since) > patience {
				t.Fatalf("process %d lives on", id.PID)
			}
		}
	}
}

func terminate(t *testing.T, id process.ID) {
	t.Helper()
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(id.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(h)
	if err := windows.TerminateProcess(h, 1); err != nil {
		t.Fatal(err)
	}
}

// info is what amux inspect says of a run.
func (w *world) info(id string) (state, reason string) {
	w.t.Helper()
	var info struct{ State, Reason string }
	if err := json.Unmarshal([]byte(w.must("inspect", id, "--json")), &info); err != nil {
		w.t.Fatal(err)
	}
	return info.State, info.Reason
}

// ends waits for the end of a run, which must be that state. A command makes the end
// of one whose host has died, and may leave it to the next.
func (w *world) ends(id, want string) (reason string) {
	w.t.Helper()
	state := ""
	for since := time.Now(); time.Since(since) < patience; time.Sleep(100 * time.Millisecond) {
		if state, reason = w.info(id); state == want {
			return reason
		}
	}
	w.t.Fatalf("run %s is %s (%s), not %s", id, state, reason, want)
	return ""
}

// Every line arrives once and in order, and is there to be read afterwards.
func TestRun(t *testing.T) {
	w := newWorld(t)
	const count = 500
	r := w.start("demo", fmt.Sprintf("[lines:%d]", count))
	if code := r.code(); code != 0 {
		t.Fatalf("code %d: %s", code, r.words.String())
	}
	end := r.wait("its end", func(e event) bool { return e.Type == "run_end" })
	if end.State != "completed" {
		t.Errorf("%+v", end)
	}
	n := 0
	for _, e := range r.seen() {
		if e.Type != "text_delta" {
			continue
		}
		for line := range strings.Lines(e.Delta) {
			if n++; n <= count && strings.TrimSpace(line) != fmt.Sprintf("line %d", n) {
				t.Fatalf("line %d is %q", n, line)
			}
		}
	}
	if n != count+1 { // it says when it is done
		t.Errorf("%d lines after %d", n, count)
	}
	if logs := w.must("logs", r.id, "--json"); logs != strings.Join(r.raw, "") {
		t.Errorf("logs has %d bytes, and %d were seen", len(logs), len(strings.Join(r.raw, "")))
	}
	if dir := w.must("inspect", r.id, "--json"); strings.Contains(dir, `\\`) {
		t.Errorf("a path has backslashes: %s", dir)
	}
}

const family = "[spawn:child][spawn:setsid][spawn:daemon][sleep:1000]"

// Who hosts a run is killed without a word: nothing of it is left.
func TestHostKilled(t *testing.T) {
	w := newWorld(t)
	r := w.start("demo", family)
	tree, owner := r.tree(3)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, append(tree, owner)...)
	if reason := w.ends(r.id, "failed"); reason != "host_gone" {
		t.Errorf("the reason is %s", reason)
	}
}

// The shim is killed: the system ends its job.
func TestShimKilled(t *testing.T) {
	w := newWorld(t)
	r := w.start("demo", family)
	tree, owner := r.tree(3)
	terminate(t, owner)
	gone(t, tree...)
	if code := r.code(); code == 0 {
		t.Error("a run without an end is a success")
	}
	w.ends(r.id, "lost")
}

// Two terminals: one has the run, the other finds it, holds it, lets it go on, and
// ends it.
func TestFromAnotherTerminal(t *testing.T) {
	w := newWorld(t)
	r := w.start("demo", family)
	tree, owner := r.tree(3)
	if list := w.must("ps"); !strings.Contains(list, r.id[len(r.id)-6:]) || !strings.Contains(list, "running") {
		t.Errorf("ps says %s", list)
	}
	w.must("pause", r.id)
	if state, _ := w.info(r.id); state != "paused" {
		t.Errorf("it is %s", state)
	}
	w.must("resume", r.id)
	if state, _ := w.info(r.id); state != "running" {
		t.Errorf("it is %s", state)
	}
	for _, name := range []string{"HUP", "QUIT", "USR1"} {
		if _, words, code := w.amux("kill", "--signal", name, r.id); code == 0 || !strings.Contains(words, "Windows cannot send SIG"+name) ||
			!strings.Contains(words, "stop or kill") {
			t.Errorf("%s: code %d, %s", name, code, words)
		}
	}
	w.must("stop", r.id)
	r.code()
	w.ends(r.id, "canceled")
	gone(t, append(tree, owner)...)
}

// A client that does not know the nonce of a run's shim is refused.
func TestNonce(t *testing.T) {
	w := newWorld(t)
	r := w.start("demo", family)
	tree, owner := r.tree(3)
	info, err := shim.ReadInfo(filepath.Join(w.home, "config", "runs", r.id))
	if err != nil {
		t.Fatal(err)
	}
	for _, nonce := range []string{"", "wrong", info.Nonce[1:]} {
		other := info
		other.Nonce = nonce
		conn, err := shim.Dialer(shim.Connect).Dial(t.Context(), other)
		if refused, ok := errors.AsType[*shim.RemoteError](err); !ok || refused.Code != "VALIDATION_ERROR" {
			t.Errorf("nonce %q: %v", nonce, err)
		}
		if err == nil {
			conn.Close()
		}
	}
	conn, err := shim.Dialer(shim.Connect).Dial(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Kill(shim.Stop{Reason: "kill", By: "test"}); err != nil {
		t.Error(err)
	}
	r.code()
	if reason := w.ends(r.id, "canceled"); reason != "killed" {
		t.Errorf("it ended because it was %s", reason)
	}
	gone(t, append(tree, owner)...)
}

func TestTimeout(t *testing.T) {
	w := newWorld(t)
	r := w.start("demo", family, "--timeout", "5s")
	tree, owner := r.tree(3)
	if code := r.code(); code == 0 {
		t.Error("it was in time")
	}
	w.ends(r.id, "timed_out")
	gone(t, append(tree, owner)...)
}

// A detached run's command ends at once, though its output is a pipe that somebody
// reads to the end; serve may be killed, and another process ends the run.
func TestDetached(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("run", "--detach", "demo", family)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var words bytes.Buffer
	cmd.Stderr = &words
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() { all, _ := io.ReadAll(out); said <- strings.TrimSpace(string(all)) }()
	id := ""
	select {
	case id = <-said:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("the pipe has no end")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, words.String())
	}
	r := &running{w: w, id: id}
	for since := time.Now(); strings.Count(w.must("logs", id, "--json"), `"tool_result"`) < 3; time.Sleep(50 * time.Millisecond) {
		if time.Since(since) > patience {
			t.Fatal("the agent does not start")
		}
	}
	for line := range strings.Lines(w.must("logs", id, "--json")) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		r.events = append(r.events, e)
	}
	tree, owner := r.tree(3)
	var meta struct {
		HostPID int `json:"host_pid"`
	}
	data, err := os.ReadFile(filepath.Join(w.home, "config", "runs", id, "run.json"))
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	if err != nil {
		t.Fatal(err)
	}
	serve := alive(t, meta.HostPID)
	terminate(t, serve)
	gone(t, serve)
	for _, id := range append(tree, owner) {
		if !process.Alive(id) {
			t.Errorf("process %d has ended with serve", id.PID)
		}
	}
	w.must("stop", id)
	w.ends(id, "canceled")
	gone(t, append(tree, owner)...)
}

// configure gives the world an agent of its own: command is as config.toml has it.
func (w *world) configure(name, command string) {
	w.t.Helper()
	text := fmt.Sprintf("[agents.%s]\nadapter = \"command\"\ncommand = %s\n", name, command)
	if err := os.WriteFile(filepath.Join(w.home, "config", "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// said is the text of a run.
func (r *running) said() (text string) {
	for _, e := range r.seen() {
		text += e.Delta
	}
	return text
}

// A line of the user's own is given to cmd.exe as it is.
func TestShellLine(t *testing.T) {
	w := newWorld(t)
	w.configure("shell", `'echo "one  two"& echo three'`)
	r := w.start("shell", "hello")
	if code := r.code(); code != 0 || !strings.Contains(r.said(), `"one  two"`) || !strings.Contains(r.said(), "three") {
		t.Errorf("code %d: %q %s", code, r.said(), r.words.String())
	}
}

// A batch file runs with arguments that are plain, and gets no others.
func TestBatchFile(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.home, "agent.cmd")
	if err := os.WriteFile(path, []byte("@echo off\r\necho got %1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.configure("batch", fmt.Sprintf(`['%s', "--fine"]`, path))
	r := w.start("batch", "hello")
	if code := r.code(); code != 0 || !strings.Contains(r.said(), "got --fine") {
		t.Errorf("code %d: %q %s", code, r.said(), r.words.String())
	}
	for _, arg := range []string{"hello", "a&echo b", "100%"} {
		w.configure("batch", fmt.Sprintf(`['%s', "%s"]`, path, arg))
		if _, words, code := w.amux("run", "batch", "hello"); code == 0 || !strings.Contains(words, "not safe with agent.cmd") {
			t.Errorf("%s: code %d: %s", arg, code, words)
		}
	}
}

// Ctrl-Break asks a run to end, well before its grace time is over.
func TestBreak(t *testing.T) {
	wine.Cannot(t, "it has no Ctrl-Break")
	w := newWorld(t)
	w.env = append(w.env, "AGENT_MUX_GRACE_PERIOD_MS=600000")
	r := w.start("demo", "[sleep:1000]")
	w.must("stop", r.id)
	r.code()
	w.ends(r.id, "canceled")
}

// Ctrl-C is an event of the run's own console: the agent ends of it, and what it has
// left behind on no console ends as it does after any exit.
func TestInterrupt(t *testing.T) {
	w := newWorld(t)
	r := w.start("demo", family)
	tree, owner := r.tree(3)
	w.must("kill", "--signal", "INT", r.id)
	r.code()
	if reason := w.ends(r.id, "canceled"); reason != "signal" {
		t.Errorf("the reason is %s", reason)
	}
	gone(t, append(tree, owner)...)
}

// A signal that cannot be delivered says so and changes nothing, and nobody waits for an
// agent that could not be asked to end.
func TestNotDelivered(t *testing.T) {
	if !wine.Here() {
		t.Skip("Ctrl-Break is delivered here: TestBreak")
	}
	w := newWorld(t)
	w.env = append(w.env, "AGENT_MUX_GRACE_PERIOD_MS=600000")
	r := w.start("demo", family)
	tree, owner := r.tree(3)
	if _, words, code := w.amux("kill", "--signal", "BREAK", r.id); code == 0 || !strings.Contains(words, "SIGBREAK cannot be delivered") ||
		!strings.Contains(words, "stop or kill") {
		t.Errorf("code %d: %s", code, words)
	}
	if state, _ := w.info(r.id); state != "running" {
		t.Errorf("it is %s", state)
	}
	w.must("stop", r.id)
	r.code()
	w.ends(r.id, "canceled")
	gone(t, append(tree, owner)...)
}

func TestRunOnPseudoConsoleEnds(t *testing.T) {
	w := newWorld(t)
	w.configure("shell", `"echo on a console"`)
	r := w.start("shell", "--pty", "hello")
	if code := r.code(); code != 0 {
		t.Fatalf("code %d: %s", code, r.words.String())
	}
	w.ends(r.id, "completed")
}

func TestPseudoConsole(t *testing.T) {
	wine.Cannot(t, "its pseudo-consoles show nothing")
	w := newWorld(t)
	w.configure("shell", `"echo on a console"`)
	r := w.start("shell", "--pty", "hello")
	if code := r.code(); code != 0 {
		t.Fatalf("code %d: %s", code, r.words.String())
	}
	if !strings.Contains(r.said(), "on a console") {
		t.Errorf("it said %q", r.said())
	}
}
