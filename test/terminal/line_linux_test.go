package terminal

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/internal/vt"
)

// until waits for what a test cannot go on without.
func (w *window) until(what string, met func() bool) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within a minute:\n%s", what, w.text())
		}
	}
}

// cooked reports whether the window's terminal edits lines itself.
func (w *window) cooked() bool {
	w.Helper()
	modes, err := unix.IoctlGetTermios(int(w.master.Fd()), unix.TCGETS)
	if err != nil {
		w.Fatal(err)
	}
	return modes.Lflag&unix.ICANON != 0 && modes.Lflag&unix.ECHO != 0 && modes.Iflag&unix.ICRNL != 0
}

func (w *window) output() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.raw)
}

// sized opens a window of another size.
func (d *desk) sized(cols, rows int, args ...string) *window {
	d.Helper()
	w := d.window(args...)
	w.resize(cols, rows)
	return w
}

// ready waits for the prompt, at the foot of the window.
func (w *window) ready() {
	w.Helper()
	w.until("the prompt", func() bool { return strings.HasSuffix(strings.TrimSpace(w.text()), ">") })
}

// The prompts of one run are there in the next one: with Up, and with Ctrl-R. The terminal
// is given back as it was.
func TestHistoryAcrossRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.window("run", "-i", "demo")
	first.ready()
	for _, prompt := range []string{"[say:older]", "[say:newer]"} {
		first.types(prompt + "\r")
		first.until("the answer", func() bool { return strings.Count(first.text(), prompt[5:10]) == 2 })
	}
	first.types(ctrlD)
	first.exits(0)
	if !first.cooked() || !strings.Contains(first.output(), "\x1b[?2004l") {
		t.Error("the terminal is not as it was")
	}

	secret := d.window("run", "-i", "demo", "--no-record")
	secret.ready()
	secret.types("\x1b[A")
	secret.sees("> [say:newer]")
	secret.types("\x15[say:secret]\r")
	secret.sees("Done.")
	secret.types("\x1b[A")
	secret.until("what was typed here", func() bool { return strings.Count(secret.text(), "> [say:secret]") == 2 })
	secret.types("\x15" + ctrlD)
	secret.exits(0)

	second := d.window("run", "-i", "demo")
	second.ready()
	second.types("\x1b[A")
	second.sees("> [say:newer]")
	second.types("\x15\x12old")
	second.sees("search \"old\": [say:older]")
	second.types("\r")
	second.sees("> [say:older]\nolder\n")
	second.types(ctrlD)
	second.exits(0)
}

// What is typed while the run starts is its first prompt.
func TestTypedWhileTheRunStarts(t *testing.T) {
	w := converse(t)
	w.types("[say:early]\r")
	w.sees("\nearly\n")
	w.types(ctrlD)
	w.exits(0)
}

// Pasted lines are one prompt, sent by Enter.
func TestPasteIsOnePrompt(t *testing.T) {
	w := converse(t)
	w.ready()
	w.types("\x1b[200~one\rtwo\rthree\x1b[201~")
	w.sees("> one\n  two\n  three\n")
	w.types("\r")
	w.sees("The prompt has 3 words")
	w.sees("Your prompt had 13 bytes")
	w.types(ctrlD)
	w.exits(0)
	w.sees("1 turn ·")
}

// pause is longer than a person who was typing must pause before keys answer a question.
const pause = 700 * time.Millisecond

var clock = regexp.MustCompile(`[⠀-⣿] (\d+m)?\d+s`)

// The whole screen, as people see it: in the middle of a turn with a draft below, then with
// a question that puts it aside, in windows of two sizes.
func TestConversationScreens(t *testing.T) {
	for _, test := range []struct {
		cols, rows           int
		working, asked, last string
	}{
		{80, 24, `> [say:日本語 🎨 ok][sleep:2][ask:which one?]
日本語 🎨 ok
⠋ TIME  writes
> draft 漢字
`, `> [say:日本語 🎨 ok][sleep:2][ask:which one?]
日本語 🎨 ok
? which one?
  >
`, `> [say:日本語 🎨 ok][sleep:2][ask:which one?]
日本語 🎨 ok
? which one?
  > blue
You answered: blue
Done.
> draft 漢字
`},
		{24, 10, `> [say:日本語 🎨 ok][sle
ep:2][ask:which one?]
日本語 🎨 ok
⠋ TIME  writes
> draft 漢字
`, `> [say:日本語 🎨 ok][sle
ep:2][ask:which one?]
日本語 🎨 ok
? which one?
  >
`, `> [say:日本語 🎨 ok][sle
ep:2][ask:which one?]
日本語 🎨 ok
? which one?
  > blue
You answered: blue
Done.
> draft 漢字
`},
	} {
		t.Run(fmt.Sprint(test.cols), func(t *testing.T) {
			t.Parallel()
			w := newDesk(t).sized(test.cols, test.rows, "run", "-i", "demo")
			w.ready()
			is := func(want string) {
				t.Helper()
				got := ""
				w.until("the screen:\n"+want, func() bool {
					got = clock.ReplaceAllString(w.text(), "⠋ TIME")
					return got == want
				})
			}
			w.types("[say:日本語 🎨 ok][sleep:2][ask:which one?]\r")
			w.sees("🎨 ok\n")
			w.types("draft 漢字")
			is(test.working)
			is(test.asked)
			time.Sleep(pause)
			w.types("blue\r")
			is(test.last)
			w.types("\x15" + ctrlD)
			w.exits(0)
		})
	}
}

// The window changes its size while output comes: none of it is lost, and the line is drawn
// once, as wide as the window.
func TestConversationResized(t *testing.T) {
	w := converse(t)
	w.ready()
	w.types(strings.Repeat("[lines:100][sleep:0.2]", 5) + "\r")
	w.sees("line 100")
	w.types("a draft that takes more than forty columns of it")
	for i, size := range [][2]int{{60, 20}, {40, 30}, {100, 40}, {40, 12}} {
		w.resize(size[0], size[1])
		w.until("more output", func() bool { return strings.Count(w.output(), "line 100\r\n") >= i+2 })
	}
	w.sees("Done.")
	w.sees("> a draft that takes more than forty co\n  lumns of it")
	w.types(ctrlC) // clears what was typed: no turn goes on
	w.ready()
	w.types(ctrlD)
	w.exits(0)
	for i := 1; i <= 100; i++ {
		if n := strings.Count(w.output(), fmt.Sprintf("line %d\r\n", i)); n != 5 {
			t.Fatalf("line %d is there %d times of 5", i, n)
		}
	}
}

// No colours, and nothing of an input line where the terminal has none.
func TestPlainTerminals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env = append(d.env, "NO_COLOR=1")
	w := d.window("run", "-i", "demo")
	w.ready()
	w.types("\x1b[200~[say:**bold**]\x1b[201~\r")
	w.sees("\n**bold**\n")
	w.types(ctrlD)
	w.exits(0)
	if found := regexp.MustCompile(`\x1b\[[0-9;]*m`).FindString(w.output()); found != "" {
		t.Errorf("NO_COLOR, and there is %q", found)
	}

	d = newDesk(t)
	d.env = append(d.env, "TERM=dumb")
	w = d.window("run", "-i", "demo")
	w.sees(">")
	if !w.cooked() {
		t.Error("a terminal that cannot move its cursor edits no lines")
	}
	w.types("[say:**bold**]\r")
	w.sees("\n**bold**\n")
	w.types("/help\r")
	w.sees("/stop")
	w.types(ctrlD)
	w.exits(0)
	if i := strings.IndexByte(w.output(), 0x1b); i >= 0 {
		t.Errorf("there is %.20q", w.output()[i:])
	}
}

// Finished lines are shown as Markdown, or as they are.
func TestMarkdownAtTheLine(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	const prompt = "event text_delta {\"delta\":\"# Title\\n\\n- **one** 日本\\n- `two`\\n\\n| a | b |\\n|---|---|\\n| 1 | 🎨 |\\n\"}\r"
	for name, test := range map[string]struct{ flag, text, raw string }{
		"shown": {"--timeout=1m", `
Title

• one 日本
• two

a  b
─────
1  🎨
>
`, "\x1b[1m\x1b[4mTitle\x1b[0m\r\n"},
		"plain": {"--plain", `
# Title

- **one** 日本
- ` + "`two`" + `

| a | b |
|---|---|
| 1 | 🎨 |
>
`, "# Title\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDesk(t).window("run", "-i", "fake", "--plugin", "fake="+filepath.Join(s.Plugins, "fake"), test.flag)
			w.ready()
			w.types(prompt)
			w.until("the end of the turn", func() bool {
				return strings.HasSuffix(w.text(), "🎨\n>\n") || strings.HasSuffix(w.text(), "🎨 |\n>\n")
			})
			if text := w.text(); !strings.HasSuffix(text, test.text) || !strings.Contains(w.output(), test.raw) {
				t.Errorf("shown:\n%s", text)
			}
			w.types(ctrlD)
			w.exits(0)
		})
	}
}

// redirected opens a window with a command whose stdout is something else.
func (d *desk) redirected(stdout *os.File, args ...string) *window {
	d.Helper()
	master, slave, err := pty.Open(80, 24)
	if err != nil {
		d.Fatal(err)
	}
	w := &window{desk: d, master: master, screen: vt.NewScreen(80, 24), over: make(chan struct{})}
	w.cmd = d.command(args...)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = slave, stdout, slave
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	slave.Close()
	w.watch()
	return w
}

// The answer goes to a file or a pipe as it is, while a person types at the terminal. What
// reads a pipe may write to the same terminal, so that nothing is drawn there.
func TestConversationIntoFile(t *testing.T) {
	for _, kind := range []string{"file", "pipe"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			file, err := os.Create(filepath.Join(t.TempDir(), "answer.md"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			stdout := file
			copied := make(chan bool)
			if kind == "pipe" {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout = w
				go func() { // ends with the command
					_, _ = io.Copy(file, r)
					close(copied)
				}()
			} else {
				close(copied)
			}
			w := newDesk(t).redirected(stdout, "run", "-i", "demo")
			if kind == "pipe" {
				stdout.Close()
			}
			w.ready()
			w.types("[say:**bold** and `code`]\r")
			answer := func() string {
				data, _ := os.ReadFile(file.Name())
				return string(data)
			}
			w.until("the end of the turn", func() bool {
				return strings.HasSuffix(answer(), "Done.\n") && strings.HasSuffix(strings.TrimSpace(w.text()), "\n>")
			})
			if drawn := strings.Contains(w.output(), "\x1b[J"); drawn != (kind == "file") {
				t.Errorf("a line was drawn: %v", drawn)
			}
			w.types(ctrlD)
			w.exits(0)
			<-copied
			if got := answer(); got != "**bold** and `code`\n\nDone.\n" {
				t.Errorf("it got %q", got)
			}
		})
	}
}

// Ctrl-Z gives the terminal back until the run goes on.
func TestConversationSuspended(t *testing.T) {
	w := converse(t)
	w.ready()
	w.types("draft")
	w.sees("> draft")
	w.types("\x1a")
	w.until("the terminal as it was", w.cooked)
	w.until("the process stopped", func() bool {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
		return strings.Contains(string(data), ") T ")
	})
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.until("the line again", func() bool { return !w.cooked() && strings.Contains(w.text(), "> draft") })
	w.types("\x15[say:it goes on]\r")
	w.sees("\nit goes on\n")
	w.types(ctrlD)
	w.exits(0)
}

// The time that a person thinks is not the agent's.
func TestPersonThinksAtTheLine(t *testing.T) {
	w := converse(t, "[say:ready]", "--idle-timeout", "1s")
	w.sees("ready\n")
	w.ready()
	time.Sleep(2500 * time.Millisecond) // longer than the agent may be silent
	w.types("[say:still there]\r")
	w.sees("\nstill there\n")
	w.types("[sleep:100]\r")
	w.exits(11)
	w.sees("--idle-timeout")
}

// Commands of amux's own; the rest goes to the agent.
func TestCommandsOfTheLine(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not in PATH, and without it /diff has nothing to show")
	}
	t.Parallel()
	d := newDesk(t)
	s := agents.NewStage(t, "fake", "healthy")
	d.args = []string{"--plugin", "fake=" + filepath.Join(s.Plugins, "fake")}
	d.env = append(d.env, "PAGER=cat")
	repository := t.TempDir()
	file := filepath.Join(repository, "a.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-qm", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	w := d.window("run", "-i", "fake", "--cwd", repository)
	w.ready()
	w.types("/diff\r")
	w.sees("nothing has changed so far")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.types("/diff\r")
	w.sees("+two\n")
	w.until("the line again", func() bool { return !w.cooked() })
	w.types("usage 1200 34\r")
	w.until("the cost", func() bool { // when the turn has ended
		w.types("/cost\r")
		time.Sleep(100 * time.Millisecond)
		return strings.Contains(w.text(), "1 turn · 1,200 tokens in · 34 out")
	})
	w.types("/help\r")
	w.sees("/model NAME")
	w.types("/model\r")
	w.sees("amux agents models fake")
	w.types(`event text_delta {"delta":"\u001b[2J\u001b]0;title\u0007harmless\n"}` + "\r")
	w.sees("\nharmless\n")
	if out := w.output(); strings.Contains(out, "\x1b[2J") || strings.Contains(out, "\x1b]0") {
		t.Error("control sequences of the agent reached the terminal")
	}
	w.types("/stop\r")
	w.exits(130)
	w.sees("canceled")
}

// Attached to a conversation the line is the same; leaving gives the terminal back, and the
// run goes on.
func TestLineOfAttach(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.amuxSays("run", "-i", "-d", "demo", "--name", "pair")
	t.Cleanup(func() { _ = d.command("kill", "pair").Run(); d.killServers() })
	w := d.window("attach", "pair")
	w.sees("attached; type ~. to leave")
	w.types("\x1b[200~[say:first]\rand more\x1b[201~\r")
	w.sees("> [say:first] (+1 line)\nfirst\n")
	w.types("[sleep:1][approve]\r")
	w.sees("waits for demo")
	w.types("draft")
	w.sees("allow? [y]es")
	time.Sleep(pause)
	w.types("y\r")
	w.sees("It was approved")
	w.sees("> draft")
	w.types("\x15/cost\r")
	w.sees("2 turns ·")
	w.types("\x1b[A\x1b[A\x1b[A")
	w.sees("> [say:first]\n  and more")
	w.types("\x15\x15\x7f\x15~.\r")
	w.exits(0)
	w.sees("which goes on")
	if !w.cooked() {
		t.Error("the terminal is not as it was")
	}
}
