package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/internal/vt"
)

func TestMain(m *testing.M) { agents.Run(m) }

// desk is a user with a run on a terminal.
type desk struct {
	*testing.T
	amux string
	args []string
	env  []string
	run  *exec.Cmd
	out  bytes.Buffer
	// config is the folder of runs.
	config string
}

// sit starts a run named r of the script.
func sit(t *testing.T, script string, flags ...string) *desk {
	t.Helper()
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(amux); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	s := agents.NewStage(t, "fake", "healthy")
	d := &desk{T: t, amux: amux, args: []string{"--plugin", "fake=" + filepath.Join(s.Plugins, "fake")}}
	d.config = s.Config
	d.env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+s.Config, "XDG_RUNTIME_DIR="+s.Runtime, "TMPDIR="+s.Temp, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	d.run = d.command(append([]string{"run", "fake", script, "--name", "r", "--pty", "--timeout", "60s"}, flags...)...)
	d.run.Stdout, d.run.Stderr = &d.out, &d.out
	if err := d.run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if slices.Contains(flags, "--detach") {
			_ = d.command("kill", "r").Run() // it may have ended
			d.killServers()
		}
		if d.run.ProcessState == nil {
			_ = d.run.Process.Signal(syscall.SIGTERM)
			_ = d.run.Wait()
		}
		if t.Failed() {
			t.Logf("amux run said: %s", &d.out)
		}
	})
	d.shows("") // there is such a run
	return d
}

// killServers kills amux serve of this desk and says how many there were.
func (d *desk) killServers() (killed int) {
	for _, p := range agents.Processes() {
		if strings.Contains(p.Command, "serve ") && strings.Contains(p.Command, d.config) && syscall.Kill(p.PID, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

func (d *desk) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.amux, append(d.args, args...)...)
	cmd.Env, cmd.Dir = d.env, d.TempDir()
	return cmd
}

// amuxSays runs a command to its end.
func (d *desk) amuxSays(args ...string) string {
	d.Helper()
	cmd := d.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		d.Fatalf("amux %s: %v\n%s%s", strings.Join(args, " "), err, out, &errs)
	}
	return string(out)
}

// shows waits until amux screen shows the text.
func (d *desk) shows(want string) {
	d.Helper()
	last := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, err := d.command("screen", "r").CombinedOutput()
		if last = string(out); err == nil && strings.Contains(last, want) {
			return
		}
	}
	d.Fatalf("amux screen never shows %q, but\n%s", want, last)
}

// ended waits for the run.
func (d *desk) ended() {
	d.Helper()
	if err := d.run.Wait(); err != nil {
		d.Errorf("amux run: %v", err)
	}
}

// window is a terminal with amux attach in it.
type window struct {
	*desk
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	screen *vt.Screen
	raw    []byte
	over   chan struct{}
}

// attach opens a window, and attaches it to the run.
func (d *desk) attach(cols, rows int, flags ...string) *window {
	d.Helper()
	master, slave, err := pty.Open(cols, rows)
	if err != nil {
		d.Fatal(err)
	}
	w := &window{desk: d, master: master, screen: vt.NewScreen(cols, rows), over: make(chan struct{})}
	w.cmd = d.command(append([]string{"attach", "r"}, flags...)...)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = slave, slave, slave
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	slave.Close()
	w.watch()
	return w
}

// watch keeps what the window shows until it is closed.
func (w *window) watch() {
	go func() {
		defer close(w.over)
		buf := make([]byte, 4096)
		for {
			n, err := w.master.Read(buf)
			w.mu.Lock()
			w.raw = append(w.raw, buf[:n]...)
			w.screen.Write(buf[:n])
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	w.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		w.master.Close()
		<-w.over
	})
}

func (w *window) text() string {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.screen.Text()
}

// sees waits until the window shows the text.
func (w *window) sees(want string) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(w.text(), want); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("never seen: %q, but\n%s\n%.2000q", want, w.text(), w.raw)
		}
	}
}

func (w *window) types(keys string) {
	w.Helper()
	if _, err := w.master.Write([]byte(keys)); err != nil {
		w.Fatal(err)
	}
}

func (w *window) resize(cols, rows int) {
	w.Helper()
	w.mu.Lock()
	w.screen.Resize(cols, rows)
	w.mu.Unlock()
	if err := pty.Resize(w.master, cols, rows); err != nil {
		w.Fatal(err)
	}
}

// leaves waits for the end of amux attach, and looks at how it has left the
// window.
func (w *window) leaves(said string) {
	w.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			w.Errorf("amux attach: %v\n%s", err, w.text())
		}
	case <-time.After(time.Minute):
		w.Fatalf("amux attach does not end:\n%s", w.text())
	}
	<-w.over
	if text := w.text(); !strings.Contains(text, said) {
		w.Errorf("it did not say %q:\n%s", said, text)
	}
	if modes := string(w.screen.AppendModes(nil)); w.screen.Alternate() || w.screen.CursorKeys() || strings.Contains(modes, "2004h") ||
		strings.Contains(modes, "?25l") || strings.Contains(modes, "=") {
		w.Errorf("the terminal was left in the program's modes: %q", modes)
	}
	for _, question := range []string{"\x1b[6n", "\x1b[c", "]11;?"} {
		if bytes.Contains(w.raw, []byte(question)) {
			w.Errorf("the window was asked %q, which the shim answers", question)
		}
	}
}

const detach = "\x1c"

func TestAttach(t *testing.T) {
	d := sit(t, "tui")
	d.shows("size 120x40")
	w := d.attach(100, 30)
	w.sees("size 100x30")
	w.types("a")
	w.sees(`typed "a"`)
	w.types("b\x1b[A")
	w.sees(`typed "ab\x1b[A"`)
	w.resize(90, 25)
	w.sees("size 90x25")
	if text := w.text(); !strings.Contains(text, "└ 世界 status") || strings.Count(text, "\n") != 25 {
		t.Errorf("not the whole screen:\n%s", text)
	}
	w.types(detach)
	w.leaves("goes on")

	// From the same size the program learns nothing: what it has drawn is shown.
	again := d.attach(90, 25)
	again.sees(`typed "ab\x1b[A"`)
	if got, want := again.text(), d.amuxSays("screen", "r"); got != want {
		t.Errorf("amux attach shows\n%s\namux screen\n%s", got, want)
	}
	other := d.attach(90, 25, "--steal")
	other.sees("size 90x25")
	d.amuxSays("send", "r", "--keys", "C-a", "Up", "=x y", "Enter")
	for _, w := range []*window{again, other} {
		w.sees(`\x01\x1bOAx y\r"`)
	}
	other.types("z" + detach + "never")
	other.leaves("goes on")
	again.sees(`y\rz"`)
	again.types("q")
	again.leaves("has ended: completed")
	d.ended()
	if !strings.Contains(d.out.String(), `typed "ab\x1b[A\x01\x1bOAx y\rz"`) {
		t.Errorf("%s", &d.out)
	}
	if text := d.amuxSays("screen", "r"); !strings.Contains(text, "end") {
		t.Errorf("after the end: %q", text)
	}
	late := d.attach(80, 24)
	late.leaves("has ended: completed")
}

// Who types has the size: also who had it before somebody else did.
func TestAttachInTurn(t *testing.T) {
	d := sit(t, "tui")
	first := d.attach(100, 30)
	first.sees("size 100x30")
	second := d.attach(80, 24, "--steal")
	second.sees("size 80x24")
	second.types("a")
	second.sees(`typed "a"`)
	first.sees("size 80x24")
	second.types(detach)
	second.leaves("goes on")
	first.types("b")
	first.sees("size 100x30")
	first.sees(`typed "ab"`)
	first.types("q")
	first.leaves("has ended: completed")
	d.ended()
}

// A shell has no screen that it redraws: what it has printed is there, and
// job control is that of any terminal.
func TestAttachShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	d := sit(t, "program PS1='shell> ' "+bash+" --norc --noprofile -i")
	w := d.attach(80, 10)
	w.sees("shell>")
	w.types("seq 1 30; sleep 1000\r")
	w.sees("29\n30\n")
	w.types("\x03")
	w.types("echo rc=$?; stty size\r")
	w.sees("rc=130\n10 80\n")
	w.types("sleep 1000 &\rjobs\r")
	w.sees("Running")
	w.types(detach)
	w.leaves("goes on")
	again := d.attach(80, 10)
	again.sees("Running")
	again.types("kill %1; echo still the $((6*7))nd\r")
	again.sees("still the 42nd")
	again.types("exit\r")
	again.leaves("has ended: completed")
	d.ended()
}

func TestAttachVim(t *testing.T) {
	vim, err := exec.LookPath("vim")
	if err != nil {
		t.Skip("there is no vim")
	}
	file := filepath.Join(t.TempDir(), "file.txt")
	d := sit(t, fmt.Sprintf("program %s -u NONE -i NONE -N --cmd 'set showmode ruler' %s", vim, file))
	d.shows("~\n~\n")
	w := d.attach(80, 24)
	w.sees("~")
	w.types("ione\rtwo 世界")
	w.sees("-- INSERT --")
	w.types("\x1b")
	w.sees("two 世界")
	w.resize(60, 15)
	for range 20 { // until vim has heard of it
		w.types(":set columns? lines?\r")
		time.Sleep(200 * time.Millisecond)
		if strings.Contains(w.text(), "columns=60") {
			break
		}
		w.types("\r")
	}
	w.sees("columns=60")
	w.sees("lines=15")
	w.types("\r")
	w.types(detach)
	w.leaves("goes on")
	again := d.attach(60, 15)
	again.sees("two 世界")
	d.amuxSays("send", "r", "--keys", "Up", "=0Othe first line", "Esc")
	again.sees("the first line\none\ntwo 世界\n~")
	again.types(":wq\r")
	again.leaves("has ended: completed")
	d.ended()
	if got, err := os.ReadFile(file); err != nil || string(got) != "the first line\none\ntwo 世界\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAttachLess(t *testing.T) {
	less, err := exec.LookPath("less")
	if err != nil {
		t.Skip("there is no less")
	}
	file := filepath.Join(t.TempDir(), "file.txt")
	var lines bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&lines, "line %d\n", i+1)
	}
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d := sit(t, "program "+less+" "+file)
	d.shows("line 39\n/") // it hears of no size before it is ready
	w := d.attach(80, 24)
	w.sees("line 23\n:")
	w.types(" ")
	w.sees("line 46\n:")
	w.types("G")
	w.sees("line 1000\n")
	w.types("g")
	w.sees("line 1\nline 2\n")
	w.resize(40, 11)
	w.sees("line 10\n:")
	w.types("/line 500\r")
	w.sees("line 500\n")
	w.types("q")
	w.leaves("has ended: completed")
	d.ended()
}

// The server of a detached run may be killed: attach reads what the shim writes,
// and types what the shim takes.
func TestAttachOfDetachedRun(t *testing.T) {
	d := sit(t, "tui", "--detach")
	d.ended()
	w := d.attach(80, 24)
	w.sees("size 80x24")
	if killed := d.killServers(); killed != 1 {
		t.Fatalf("%d servers were killed", killed)
	}
	w.types("still")
	w.sees(`typed "still"`)
	w.resize(70, 20)
	w.sees("size 70x20")
	w.types("q")
	w.leaves("has ended: completed")
}

// A terminal that is closed, or a signal, leaves the run alone.
func TestAttachCutOff(t *testing.T) {
	d := sit(t, "tui")
	w := d.attach(80, 24)
	w.sees("size 80x24")
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-w.over
	_ = w.cmd.Wait()
	if code := w.cmd.ProcessState.ExitCode(); code != 143 || w.screen.Alternate() {
		t.Errorf("exit code %d, alternate screen %v", code, w.screen.Alternate())
	}
	gone := d.attach(80, 24)
	gone.sees("size 80x24")
	gone.master.Close()
	<-gone.over
	if _ = gone.cmd.Wait(); gone.cmd.ProcessState.ExitCode() == -1 {
		t.Errorf("it did not give the terminal back: %v", gone.cmd.ProcessState)
	}
	again := d.attach(70, 20)
	again.sees("size 70x20")
	again.types("q")
	again.leaves("has ended: completed")
	d.ended()
}
