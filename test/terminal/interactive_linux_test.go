package terminal

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/internal/vt"
)

// converse opens a window with a conversation in it.
func converse(t *testing.T, args ...string) *window {
	t.Helper()
	return inWindow(t, append([]string{"run", "-i", "demo"}, args...)...)
}

// inWindow opens a window with a command in it.
func inWindow(t *testing.T, args ...string) *window {
	t.Helper()
	t.Parallel()
	return newDesk(t).window(args...)
}

// newDesk is a desk without a run.
func newDesk(t *testing.T) *desk {
	t.Helper()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	s := agents.NewStage(t)
	d := &desk{T: t, amux: amux, config: s.Config}
	d.env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+s.Config, "XDG_RUNTIME_DIR="+s.Runtime, "TMPDIR="+s.Temp, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	return d
}

// window opens a window with a command in it.
func (d *desk) window(args ...string) *window {
	d.Helper()
	return d.open(100, 40, args...)
}

// open opens a window of that size from the start.
func (d *desk) open(cols, rows int, args ...string) *window {
	d.Helper()
	master, slave, err := pty.Open(cols, rows)
	if err != nil {
		d.Fatal(err)
	}
	w := &window{desk: d, master: master, screen: vt.NewScreen(cols, rows), over: make(chan struct{})}
	w.cmd = d.command(args...)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = slave, slave, slave
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	slave.Close()
	w.watch()
	return w
}

// exits waits for the end of the command.
func (w *window) exits(code int) {
	w.Helper()
	ended := make(chan bool, 1)
	go func() {
		_ = w.cmd.Wait() // the code says it
		ended <- true
	}()
	select {
	case <-ended:
		select {
		case <-w.over: // what it has said is on the screen
		case <-time.After(time.Second): // another process has the terminal, too
		}
		if got := w.cmd.ProcessState.ExitCode(); got != code {
			w.Errorf("exit code %d, want %d:\n%s", got, code, w.text())
		}
	case <-time.After(time.Minute):
		w.Fatalf("it does not end:\n%s", w.text())
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
)

// Lines are prompts and answers, Ctrl-C ends a turn and no more, Ctrl-D ends the
// conversation.
func TestConversation(t *testing.T) {
	w := converse(t)
	w.sees(">")
	w.types("[say:the first]\r")
	w.sees("the first\n")
	w.types("[approve][ask:which?]\r")
	w.sees("allow? [y]es")
	w.types("y\r")
	w.sees("? which?")
	w.types("blue\r")
	w.sees("You answered: blue")
	w.types("[sleep:100]\r")
	time.Sleep(300 * time.Millisecond) // so that the turn has begun
	w.types(ctrlC)
	w.sees("interrupting; press Ctrl-C again to stop the run")
	w.types("[say:after that]\r")
	w.sees("after that\n")
	w.types(ctrlD)
	w.exits(0)
	w.sees("turns ·")
}

// Ctrl-C twice stops the run.
func TestConversationStopped(t *testing.T) {
	w := converse(t, "[ignore-term][sleep:100]", "--grace", "100ms")
	time.Sleep(500 * time.Millisecond)
	w.types(ctrlC)
	w.sees("interrupting")
	w.types(ctrlC)
	w.exits(130)
}

// What was typed before a question was on the screen does not answer it, be it still
// in the terminal or read already.
func TestTypedAheadAnswersNothing(t *testing.T) {
	for name, args := range map[string][]string{
		"run":          {"run", "demo", "[sleep:1][approve][approve]"},
		"conversation": {"run", "-i", "demo", "[sleep:1][approve][approve]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := inWindow(t, args...)
			if name == "run" {
				w.types("y\ry\ry\ry") // the last without a line's end
			}
			w.sees("allow? [y]es")
			time.Sleep(300 * time.Millisecond) // in which a wrong answer would be given
			if n := strings.Count(w.text(), "allow?"); n != 1 {
				t.Errorf("%d questions are asked:\n%s", n, w.text())
			}
			w.types("n not now\ry\ry\r") // one answer, and two before the next question
			for deadline := time.Now().Add(30 * time.Second); strings.Count(w.text(), "allow?") < 2; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the second question is not asked:\n%s", w.text())
				}
			}
			w.sees("not now")
			w.types("n\r")
			if name == "run" {
				w.exits(0)
			}
		})
	}
}

// What a rule answers is not asked; what no rule answers is.
func TestRulesAnswerUnasked(t *testing.T) {
	for rule, want := range map[string]int{"write_file": 0, "edit_file": 1} {
		t.Run(rule, func(t *testing.T) {
			w := inWindow(t, "run", "demo", "[approve]", "--allow", rule)
			if want > 0 {
				w.sees("allow? [y]es")
				w.types("y\r")
			}
			w.exits(0)
			w.sees("It was approved, so I wrote the file.")
			if n := strings.Count(w.text(), "asks for approval"); n != want {
				t.Errorf("%d questions are asked, want %d:\n%s", n, want, w.text())
			}
		})
	}
}

// A plugin that did not come with amux says which program its plan starts, and asks before
// its first run at a terminal: who says no starts nothing, who says yes is not asked again.
func TestFirstRunOfPlugin(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	d := newDesk(t)
	example, err := filepath.Abs("../../docs/example-plugin")
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(t.TempDir(), "dist")
	d.amuxSays("plugin", "package", example, "--out", dist)
	archives, err := filepath.Glob(dist + "/*.tar.gz")
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	archive, err := os.ReadFile(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	d.amuxSays("plugin", "install", archives[0], "--sha256", fmt.Sprintf("%x", sha256.Sum256(archive)))

	const starts, question = "agent shout runs ", "plugin shout (checksum pinned) has never run here"
	no := d.window("run", "shout", "hello")
	no.sees(question)
	no.sees("(plugin shout 0.1.0, checksum pinned)")
	no.types("n\r")
	no.exits(10)
	no.sees("plugin shout was refused")
	if text := no.text(); !strings.Contains(text, starts) || strings.Contains(text, "HELLO") {
		t.Errorf("refused: %s", text)
	}
	yes := d.window("run", "shout", "hello")
	yes.sees(question)
	yes.types("y\r")
	yes.sees("HELLO")
	yes.exits(0)
	again := d.window("run", "shout", "again")
	again.sees("AGAIN")
	again.exits(0)
	if text := again.text(); !strings.Contains(text, starts) || strings.Contains(text, "never run here") {
		t.Errorf("the second run: %s", text)
	}
}

// What a allows is said before it counts, and holds for the rest of the run: the host
// answers, and nobody is asked again.
func TestAllowedForTheRestOfTheRun(t *testing.T) {
	w := inWindow(t, "run", "demo", "[approve][sleep:0.3][approve][ask:which?]")
	w.sees("a allows for the rest of the run: write_file")
	w.sees("allow? [y]es, [n]o, [a]lways")
	w.types("?\r")
	w.sees("deny it; the agent gets the reason")
	w.types("a\r")
	w.sees("? which?")
	w.types("this\r")
	w.exits(0)
	text := w.text()
	if asked, wrote := strings.Count(text, "asks for approval"), strings.Count(text, "It was approved"); asked != 1 || wrote != 2 {
		t.Errorf("%d questions were asked, %d files written:\n%s", asked, wrote, text)
	}
}

// The pager shows all of a question, and has the terminal meanwhile.
func TestQuestionInPager(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env = append(d.env, "PAGER=cat; printf 'in the pager '; read -r typed </dev/tty; echo \"got $typed\"")
	w := d.window("run", "demo", "[approve]")
	w.sees("allow? [y]es")
	w.types("d\r")
	w.sees("in the pager")
	w.types("n from me\r")
	w.sees("got n from me")
	for deadline := time.Now().Add(30 * time.Second); strings.Count(w.text(), "allow? [y]es") < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the question is not asked again:\n%s", w.text())
		}
	}
	w.types("y\r")
	w.sees("It was approved")
	w.exits(0)
}
