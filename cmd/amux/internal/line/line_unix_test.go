//go:build unix

package line

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/vt"
)

// desk is a terminal with an input line.
type desk struct {
	*Line
	t          *testing.T
	io         *iostreams.IO
	mu         sync.Mutex
	screen     *vt.Screen
	cols, rows int
	restored   int
}

func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.screen.Write([]byte(strings.ReplaceAll(string(p), "\n", "\r\n"))) // as a terminal's output mode does
	return len(p), nil
}

func open(t *testing.T, cols, rows int, o Options) *desk {
	t.Helper()
	d := &desk{t: t, cols: cols, rows: rows, screen: vt.NewScreen(max(1, cols), max(1, rows))}
	d.io = &iostreams.IO{
		Out: d, Err: d, InTTY: true, OutTTY: true, ErrTTY: true,
		Keys: func() (func() error, error) { return func() error { d.restored++; return nil }, nil },
		Size: func() (int, int, error) { return d.cols, d.rows, nil },
	}
	var err error
	if d.Line, err = Open(d.io, o); err != nil {
		t.Fatal(err)
	}
	return d
}

// types types, and returns what was sent.
func (d *desk) types(keys string) []string {
	return d.answers(keys, 0)
}

// answers types after a question, and returns what was sent.
func (d *desk) answers(keys string, asked int) (sent []string) {
	texts, _ := d.Type([]byte(keys), asked)
	for _, text := range texts {
		sent = append(sent, text.Text)
	}
	return sent
}

func (d *desk) says(text string) { fmt.Fprint(d.io.Err, text) }

// shows compares the screen, and where the cursor is, which is shown as ▏.
func (d *desk) shows(want string) {
	d.t.Helper()
	d.Line.mu.Lock()
	d.draw()
	d.Line.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := d.screen.Text(); got != strings.TrimPrefix(want, "\n") {
		x, y := d.screen.Cursor()
		d.t.Errorf("cursor at %d,%d\n%s", x, y, cmp.Diff(strings.TrimPrefix(want, "\n"), got))
	}
}

// at compares where the cursor is.
func (d *desk) at(x, y int) {
	d.t.Helper()
	if gotX, gotY := d.screen.Cursor(); gotX != x || gotY != y {
		d.t.Errorf("the cursor is at %d,%d, want %d,%d:\n%s", gotX, gotY, x, y, d.screen.Text())
	}
}

func TestScreen80x24(t *testing.T) {
	d := open(t, 80, 24, Options{Prompt: "> ", Echo: true})
	d.says("whole line\nhalf")
	d.Status("⠋ 3s  waits for demo")
	d.types("hello 世界")
	d.shows(`
whole line
half
⠋ 3s  waits for demo
> hello 世界
`)
	d.at(12, 3)
	d.says(" of it\n")
	if got := d.types("\x1b[D!\r"); len(got) != 1 || got[0] != "hello 世!界" {
		t.Errorf("sent %q", got)
	}
	d.Status("")
	d.shows(`
whole line
half of it
> hello 世!界
>
`)
	d.Close()
	if d.restored != 1 || d.io.Out != d || d.io.Err != d {
		t.Error("the terminal was not given back")
	}
	d.says("after\n")
	if text := d.screen.Text(); !strings.HasSuffix(text, "> hello 世!界\nafter\n") {
		t.Errorf("it ended with\n%s", text)
	}
}

func TestNarrowScreen(t *testing.T) {
	d := open(t, 12, 8, Options{Prompt: "> ", Echo: true})
	d.Status("a status that is longer than the window")
	d.types("漢字かな交じり文 🎨 end")
	d.shows(`
a status t…
> 漢字かな
  交じり文
  🎨 end
`)
	d.at(8, 3)
	d.types("\x01") // the cursor goes to the start
	d.at(2, 1)
	d.typed = time.Time{} // long ago
	d.Question("  a very long question: ")
	d.Shown(1)
	d.Type([]byte("y"), 1)
	d.shows(`
  a very lo
ng question
: y
`)
	d.Type([]byte("\r"), 1)
	d.Answered()
	d.shows(`
  a very lon
g question:
y
a status t…
> 漢字かな
  交じり文
  🎨 end
`)
}

// A window that is too small for anything shows little, and what is typed is whole.
func TestTinyScreens(t *testing.T) {
	for cols := range 8 {
		for rows := range 5 {
			d := open(t, cols, rows, Options{Prompt: "> ", Echo: true})
			d.says("日本語 half")
			d.Status("⠋ 3s  waits")
			d.types("漢字 🎨 a\x1b[D")
			d.Question("  a long question: ")
			d.Shown(1)
			d.Answered()
			d.says(" of it\n")
			if got := d.types("b\r"); len(got) != 1 || got[0] != "漢字 🎨 ba" {
				t.Errorf("%d×%d: sent %q", cols, rows, got)
			}
			d.Close()
		}
	}
}

// More is typed than fits: the part around the cursor is shown, and no output is lost.
func TestLongTextIsShownAroundTheCursor(t *testing.T) {
	d := open(t, 20, 8, Options{Prompt: "> ", Echo: true})
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	d.says("first\n")
	text := strings.Join(lines, "\r")
	d.types(pasteBegin + text[:50])
	d.types(text[50:] + pasteEnd)
	d.shows("first\n  line 27\n  line 28\n  line 29\n")
	for range 15 {
		d.types("\x1b[A")
	}
	d.shows("first\n  line 13\n  line 14\n  line 15\n")
	if got := d.types("\r"); len(got) != 1 || got[0] != strings.Join(lines, "\n") {
		t.Errorf("sent %q", got)
	}
}

func TestResizeDuringOutput(t *testing.T) {
	d := open(t, 30, 8, Options{Prompt: "> "})
	d.types("a prompt that takes two rows of it")
	for i := range 10 {
		d.says(fmt.Sprintf("output %d ", i))
		if i == 5 {
			d.cols, d.rows = 20, 6
			d.screen.Resize(20, 6)
			d.Resized()
		}
		d.says("ends\n")
	}
	d.shows(`
output 6 ends
output 7 ends
output 8 ends
output 9 ends
> a prompt that tak
  es two rows of it
`)
	d.cols, d.rows = 60, 6
	d.screen.Resize(60, 6)
	d.Resized()
	d.shows(`
output 6 ends
output 7 ends
output 8 ends
output 9 ends
> a prompt that takes two rows of it
`)
}

// Keys edit as in a shell.
func TestEditing(t *testing.T) {
	for _, test := range []struct{ name, keys, want string }{
		{"nothing special", "abc", "abc"},
		{"in the middle", "ac\x1b[Db", "abc"},
		{"Home, End", "b\x1b[Ha\x1b[Fc", "abc"},
		{"the same in application mode", "b\x1bOHa\x1bOFc", "abc"},
		{"Ctrl-A, Ctrl-E", "b\x01a\x05c", "abc"},
		{"Backspace", "abd\x7fc", "abc"},
		{"Delete", "aXbc\x01\x1b[C\x1b[3~", "abc"},
		{"Ctrl-D deletes", "Xabc\x01\x04", "abc"},
		{"Ctrl-W, Ctrl-Y", "abc def\x17\x19\x19", "abc defdef"},
		{"Ctrl-U", "xyz\x15abc", "abc"},
		{"Ctrl-K", "abcxyz\x1b[D\x1b[D\x1b[D\x0b", "abc"},
		{"words", "one two three\x1bb\x1bbX\x1bfY", "one XtwoY three"},
		{"Alt-Enter", "a\x1b\rb", "a\nb"},
		{"Ctrl-J", "a|\n|b", "a\nb"},
		{"backslash and Enter", "a\\\rb", "a\nb"},
		{"Shift-Enter", "a\x1b[13;2ub", "a\nb"},
		{"up and down in the text", "ab|\n|cd|\n|ef\x1b[A\x1b[AX\x1b[BY", "abX\ncdY\nef"},
		{"a key in two pieces is one", "ac\x1b|[Db", "abc"},
		{"a character in two pieces", "a\xe4|\xb8\x96", "a世"},
		{"unknown keys do nothing", "a\x1b[99;9~\x1bOZ\x1b[<0;1;1Mb", "ab"},
		{"pasted control sequences do nothing", pasteBegin + "a\x1b[31m\x07b" + pasteEnd, "a[31mb"},
		{"pasted line ends", pasteBegin + "a\r\nb\rc\nd" + pasteEnd + "e", "a\nb\nc\nde"},
		{"the end of a paste in two pieces", pasteBegin + "a\x1b[2|01~b", "ab"},
		{"an empty paste", pasteBegin + pasteEnd + "ab", "ab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := open(t, 80, 24, Options{Prompt: "> "})
			for piece := range strings.SplitSeq(test.keys, "|") {
				if got := d.types(piece); got != nil {
					t.Fatalf("sent %q", got)
				}
			}
			if got := d.types("\r"); len(got) != 1 || got[0] != test.want {
				t.Errorf("sent %q, want %q", got, test.want)
			}
		})
	}
}

// Lines that were typed while the terminal still edited them are prompts of their own.
func TestTypedBeforeTheLine(t *testing.T) {
	d := open(t, 80, 24, Options{Prompt: "> "})
	if got := d.types("first\nsecond\nthird"); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("sent %q", got)
	}
	d.shows("> third\n")
}

func TestEndOfInput(t *testing.T) {
	d := open(t, 80, 24, Options{Prompt: "> "})
	if _, ended := d.Type([]byte("a\x04"), 0); ended {
		t.Error("Ctrl-D behind text ended the input")
	}
	if !d.Clear() || d.Clear() {
		t.Error("what was typed is cleared once")
	}
	if _, ended := d.Type([]byte("\x04x"), 0); !ended {
		t.Error("Ctrl-D did not end the input")
	}
	d.shows("")
}

// A question gets only what was read after it was shown, and not what a person goes on typing
// who has not seen it yet. What was being typed comes back.
func TestQuestionGetsNothingTypedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, 80, 24, Options{Prompt: "> ", Echo: true})
		d.types("my next prompt adds")
		d.Question("allow? ")
		d.Shown(1)
		if got := d.types("y\r"); len(got) != 1 || got[0] != "" {
			t.Errorf("typed before: %q", got) // one line, for the note that it was ignored
		}
		for _, key := range []string{" ", "a", "\r", "y", "\r", "\x7f"} {
			time.Sleep(pause - time.Millisecond)
			if got := d.answers(key, 1); got != nil {
				t.Errorf("typed on: %q", got)
			}
		}
		d.shows("allow?\n")
		time.Sleep(pause)
		if got := d.answers("n no\r", 1); len(got) != 1 || got[0] != "n no" {
			t.Errorf("answered %q", got)
		}
		d.Answered()
		d.shows("allow? n no\n> my next prompt adds a\n")

		// The end of a paste that began before is no answer either, with or without its mark.
		d.answers(pasteBegin+" and b", 1)
		d.Question("again? ")
		d.Shown(2)
		if got := d.answers("c\ry\r"+pasteEnd, 2); got != nil {
			t.Errorf("pasted: %q", got)
		}
		d.Answered()
		d.shows("allow? n no\n> my next prompt adds a and bc\n  y\n")
		d.answers(pasteBegin+"without end", 2)
		d.Question("again? ")
		d.Shown(3)
		time.Sleep(2 * pasteGap)
		if got := d.answers("y\r", 3); len(got) != 1 || got[0] != "y" {
			t.Errorf("answered %q", got)
		}
	})
}

// What is longer than a prompt may be is not sent in part.
func TestLongText(t *testing.T) {
	d := open(t, 80, 24, Options{Prompt: "> "})
	d.types(pasteBegin)
	piece := strings.Repeat("x", 1<<20)
	for range host.MaxPrompt>>20 + 1 {
		d.types(piece)
	}
	if got := d.types(pasteEnd + "\r"); got != nil {
		t.Errorf("%d texts were sent", len(got))
	}
	d.shows("amux: error: the text is longer than 8 MiB, so it is not sent\n>\n")
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	earlier := NewHistory(dir, true)
	for _, text := range []string{"first", "second\nof two lines", "second\nof two lines", "third"} {
		if err := earlier.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "prompts.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	for _, test := range []struct{ name, keys, want string }{
		{"Up", "\x1b[A", "third"},
		{"Ctrl-P, down", "\x10\x10\x10\x1b[B\x1b[B", "third"}, // the third goes up in the text
		{"what was typed comes back", "draft\x1b[A\x1b[B", "draft"},
		{"up to the first and no further", "\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A", "first"},
		{"Ctrl-R", "\x12two", "second\nof two lines"},
		{"Ctrl-R twice", "\x12ir\x12", "first"},
		{"Ctrl-R, nothing is found", "\x12zzz", ""},
		{"Ctrl-R, corrected", "\x12zz\x7f\x7ffirst", "first"},
		{"Ctrl-R, Ctrl-G", "draft\x12first\x07", "draft"},
		{"Ctrl-R, edited", "\x12first\x05 one", "first one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := open(t, 80, 24, Options{Prompt: "> ", History: NewHistory(dir, true)})
			d.types(test.keys)
			if got := d.types("\r"); len(got) != 1 || got[0] != test.want {
				t.Errorf("sent %q, want %q", got, test.want)
			}
		})
	}
	d := open(t, 80, 24, Options{Prompt: "> ", History: NewHistory(dir, true)})
	d.types("draft\x12fir")
	d.shows("search \"fir\": first\n")
	d.types("\x1b")
	d.Escape()
	d.shows("> draft\n")
	d.typed = time.Time{} // long ago
	d.Question("? ")
	d.Shown(1)
	if got := d.answers("\x1b[A\r", 1); len(got) != 1 || got[0] != "" {
		t.Errorf("the history answers a question: %q", got)
	}
}

// Many terminals add at once, and the file stays within its bounds.
func TestHistoryIsShared(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			h := NewHistory(dir, true)
			for j := range 20 {
				if err := h.Add(fmt.Sprint(i, " ", j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := NewHistory(dir, true).Prompts(); len(got) != 160 {
		t.Errorf("%d of 160 prompts are there", len(got))
	}
	h := NewHistory(dir, true)
	long := strings.Repeat("x", mostBytes/4)
	for i := range 20 {
		if err := h.Add(fmt.Sprint(i, long)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(h.path)
	if err != nil || info.Size() > mostFile || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if got := h.Prompts(); len(got) != 3 || !strings.HasPrefix(got[2], "19x") {
		t.Errorf("%d prompts", len(got))
	}
	for i := range mostPrompts + 5 {
		_ = NewHistory(dir, false).Add("not written")
		if err := h.Add(fmt.Sprint("short ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.Prompts(); len(got) != mostPrompts || got[0] != "short 5" {
		t.Errorf("%d prompts, the first is %.20q", len(got), got[0])
	}
}

// A history that was put there by somebody else is not read, not followed, not waited for.
func TestHostileHistory(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink("/etc/passwd", path) },
		"FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"huge": func(path string) error {
			if err := os.WriteFile(path, []byte("\"planted\"\n"), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
		"binary": func(path string) error {
			return os.WriteFile(path, []byte("\x00\xff{\n[1]\n\"\x1b]0;title\x07\"\nnull\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := NewHistory(dir, true)
			if err := make(h.path); err != nil {
				t.Fatal(err)
			}
			if got := h.Prompts(); len(got) != 0 {
				t.Errorf("it has %.100q", got)
			}
			_ = h.Add("mine") // it may be refused
			if got := h.Prompts(); len(got) != 1 || got[0] != "mine" {
				t.Errorf("then it has %.100q", got)
			}
		})
	}
	t.Run("lock", func(t *testing.T) {
		h := NewHistory(t.TempDir(), true)
		if err := syscall.Mkfifo(h.path+".lock", 0o600); err != nil {
			t.Fatal(err)
		}
		_ = h.Add("mine")
		if got := h.Prompts(); len(got) != 1 {
			t.Errorf("it has %q", got)
		}
	})
}

// A prompt of the history that another program wrote moves no cursor when it is shown.
func TestControlSequencesOfHistory(t *testing.T) {
	dir := t.TempDir()
	h := NewHistory(dir, true)
	if err := os.WriteFile(h.path, []byte("\"a\\u001b[2J\\u001b[Hb\\u202ec\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, 80, 24, Options{Prompt: "> ", History: h, Echo: true})
	d.says("stays\n")
	d.types("\x1b[A")
	d.shows("stays\n> a[2J[Hbc\n")
	d.types("\r")
	d.shows("stays\n> a[2J[Hbc\n>\n")
}

// What output there was before the terminal was lent is complete, and the line comes back.
func TestSuspend(t *testing.T) {
	d := open(t, 80, 24, Options{Prompt: "> "})
	d.types("draft")
	d.says("output\n")
	d.Suspend()
	fmt.Fprint(d.io.Err, "another program\n")
	if d.restored != 1 || d.io.Err != d {
		t.Error("the terminal was not given back")
	}
	if err := d.Resume(); err != nil {
		t.Fatal(err)
	}
	d.shows("output\nanother program\n> draft\n")
}

// FuzzType: whatever is typed, the text has no control characters, and what is drawn fits.
func FuzzType(f *testing.F) {
	f.Add([]byte("a\x1b[A\x12b\x1b[200~c\rd\x1b[201~\x17\x19\x1b\r漢字\x1b[D\x7f"), uint8(3))
	f.Fuzz(func(t *testing.T, typed []byte, size uint8) {
		h := NewHistory(t.TempDir(), false)
		_ = h.Add("an earlier\nprompt")
		d := open(t, 20, 6, Options{Prompt: "> ", Echo: true, History: h})
		for rest := typed[:min(len(typed), 1<<10)]; len(rest) > 0; {
			piece := rest[:min(int(size)+1, len(rest))]
			rest = rest[len(piece):]
			for _, text := range d.types(string(piece)) {
				if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f }) {
					t.Fatalf("sent %q", text)
				}
			}
			rows, row, col := d.layout()
			if len(rows) > 5 || row < 0 || row >= len(rows) || col < 0 || col >= 20 {
				t.Fatalf("%d rows, the cursor at %d,%d", len(rows), col, row)
			}
			for _, row := range rows {
				if width(row) > 20 {
					t.Fatalf("row %q is too long", row)
				}
			}
		}
	})
}
