package line

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/amux-dev/amux/cmd/amux/internal/keys"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/internal/vt"
)

// input is a text that is being typed.
type input struct {
	text []rune
	at   int // the cursor

	long    bool     // there was more than fits
	killed  []rune   // by Ctrl-K, Ctrl-U, Ctrl-W
	past    []string // the history, while the person goes through it
	when    int      // which of past is shown; len(past): what was typed
	typed   string   // before that
	search  *search
	history *History
}

// search is a search in the history: Ctrl-R.
type search struct {
	word  string
	found int // in past; -1: nothing
}

func (in *input) String() string { return string(in.text) }

func (in *input) set(text string) {
	in.text, in.at = nil, 0
	in.insert(text)
}

// what a key asks of the line.
type what int

const (
	nothing what = iota
	enter
	endOfInput
	clearScreen
)

// bindings are the keys that do something, by what a terminal sends for them.
var bindings = sync.OnceValue(func() map[string]func(*input) {
	all := map[string]func(*input){}
	for names, do := range map[string]func(*input){
		"Left C-b":                func(in *input) { in.at = max(0, in.at-1) },
		"Right C-f":               func(in *input) { in.at = min(len(in.text), in.at+1) },
		"Home C-a":                func(in *input) { in.at = in.lineStart() },
		"End C-e":                 func(in *input) { in.at = in.lineEnd() },
		"C-Left M-Left M-b":       func(in *input) { in.at = in.wordStart() },
		"C-Right M-Right M-f":     func(in *input) { in.at = in.wordEnd() },
		"Up C-p":                  (*input).up,
		"Down C-n":                (*input).down,
		"Backspace C-h":           func(in *input) { in.remove(in.at-1, in.at) },
		"Delete C-d":              func(in *input) { in.remove(in.at, in.at+1) },
		"C-w M-Backspace":         func(in *input) { in.kill(in.wordStart(), in.at) },
		"M-d":                     func(in *input) { in.kill(in.at, in.wordEnd()) },
		"C-u":                     func(in *input) { in.kill(in.lineStart(), in.at) },
		"C-k":                     func(in *input) { in.kill(in.at, in.lineEnd()) },
		"C-y":                     func(in *input) { in.insert(string(in.killed)) },
		"C-j M-Enter =\x1b\n":     func(in *input) { in.insert("\n") },
		"=\x1b[13;2u =\x1b[13;3u": func(in *input) { in.insert("\n") }, // Shift-Enter, Alt-Enter
		"=\x1b[27;2;13~":          func(in *input) { in.insert("\n") }, // Shift-Enter
		"C-r":                     (*input).searchOlder,
		"=\x1b[1~ =\x1b[7~":       func(in *input) { in.at = in.lineStart() }, // Home of some terminals
		"=\x1b[4~ =\x1b[8~":       func(in *input) { in.at = in.lineEnd() },
	} {
		for name := range strings.SplitSeq(names, " ") {
			for _, application := range []bool{false, true} {
				if key, err := keys.Bytes([]string{name}, application); err == nil {
					all[string(key)] = do
				}
			}
		}
	}
	return all
})

// take handles a key, or pasted text.
func (in *input) take(key string, history *History) what {
	if pasted, ok := strings.CutPrefix(key, pasteBegin); ok {
		in.leaveSearch()
		in.insert(pasted)
		return nothing
	}
	return in.press(key, history)
}

// press handles a key. history is that which Up shows; nil: none.
func (in *input) press(key string, history *History) what {
	in.history = history
	switch key {
	case "\r":
		if n := in.at; n > 0 && in.text[n-1] == '\\' && in.search == nil {
			in.remove(n-1, n)
			in.insert("\n")
			return nothing
		}
		in.leaveSearch()
		return enter
	case "\x04":
		if len(in.text) == 0 && in.search == nil {
			return endOfInput
		}
	case "\x0c":
		return clearScreen
	}
	if in.search != nil && in.inSearch(key) {
		return nothing
	}
	if do := bindings()[key]; do != nil {
		do(in)
		return nothing
	}
	if key[0] >= 0x20 && key[0] != 0x7f {
		in.insert(key)
	}
	return nothing
}

// insert inserts text at the cursor. Line ends become \n, control characters go.
func (in *input) insert(text string) {
	if len(in.text)+len(text) > host.MaxPrompt {
		in.long = true
		return
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	runes := []rune(text)
	in.text = slices.Insert(in.text, in.at, runes...)
	in.at += len(runes)
}

func (in *input) remove(from, to int) {
	from, to = max(0, from), min(len(in.text), to)
	if from >= to {
		return
	}
	in.text = slices.Delete(in.text, from, to)
	in.at = from
}

func (in *input) kill(from, to int) {
	if from < to {
		in.killed = slices.Clone(in.text[from:to])
		in.remove(from, to)
	}
}

func (in *input) lineStart() int {
	at := in.at
	for at > 0 && in.text[at-1] != '\n' {
		at--
	}
	return at
}

func (in *input) lineEnd() int {
	at := in.at
	for at < len(in.text) && in.text[at] != '\n' {
		at++
	}
	return at
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func (in *input) wordStart() int {
	at := in.at
	for at > 0 && !isWord(in.text[at-1]) {
		at--
	}
	for at > 0 && isWord(in.text[at-1]) {
		at--
	}
	return at
}

func (in *input) wordEnd() int {
	at := in.at
	for at < len(in.text) && !isWord(in.text[at]) {
		at++
	}
	for at < len(in.text) && isWord(in.text[at]) {
		at++
	}
	return at
}

// up goes to the line above, or to the prompt before.
func (in *input) up() {
	start := in.lineStart()
	if start == 0 {
		in.older(-1)
		return
	}
	column := in.at - start
	in.at = start - 1
	before := in.lineStart()
	in.at = min(before+column, start-1)
}

// down goes to the line below, or to the prompt after.
func (in *input) down() {
	end := in.lineEnd()
	if end == len(in.text) {
		in.older(1)
		return
	}
	column := in.at - in.lineStart()
	in.at = end + 1
	in.at = min(in.at+column, in.lineEnd())
}

// remember has past ready.
func (in *input) remember() bool {
	if in.history == nil {
		return false
	}
	if in.past == nil {
		in.past = in.history.Prompts()
		in.when = len(in.past)
	}
	return true
}

// older shows an older prompt, or a newer one.
func (in *input) older(by int) {
	if !in.remember() || in.when+by < 0 || in.when+by > len(in.past) {
		return
	}
	if in.when == len(in.past) {
		in.typed = in.String()
	}
	if in.when += by; in.when == len(in.past) {
		in.set(in.typed)
		return
	}
	in.set(in.past[in.when])
}

// searchOlder begins a search in the history, or looks for an older prompt.
func (in *input) searchOlder() {
	if !in.remember() {
		return
	}
	if in.search == nil {
		if in.when == len(in.past) {
			in.typed = in.String()
		}
		in.search = &search{found: len(in.past)}
		return
	}
	in.find(in.search.found - 1)
}

// find shows the newest prompt that contains the word, from one on.
func (in *input) find(from int) {
	s := in.search
	if s.word == "" {
		return
	}
	for i := min(from, len(in.past)-1); i >= 0; i-- {
		if at := strings.Index(in.past[i], s.word); at >= 0 {
			s.found, in.when = i, i
			in.set(in.past[i])
			in.at = len([]rune(in.past[i][:at]))
			return
		}
	}
}

// inSearch handles a key of a search, and reports whether it was one.
func (in *input) inSearch(key string) bool {
	s := in.search
	switch {
	case key == "\x12": // Ctrl-R
		return false
	case key == "\x07", key == "\x1b": // Ctrl-G, Esc
		in.search, in.when = nil, len(in.past)
		in.set(in.typed)
	case key == "\x7f", key == "\x08":
		if r := []rune(s.word); len(r) > 0 {
			s.word = string(r[:len(r)-1])
			in.find(len(in.past) - 1)
		}
	case key[0] >= 0x20:
		s.word += key
		in.find(min(s.found, len(in.past)-1))
	default:
		in.leaveSearch()
		return false
	}
	return true
}

// leaveSearch takes what was found.
func (in *input) leaveSearch() { in.search = nil }

// visible is a text as it is shown: without what is not seen or would deceive.
func visible(text string) string {
	return printable.String(strings.ReplaceAll(text, "\t", "    "))
}

// layout returns the rows of the text behind a prompt, at most that many, and where the
// cursor is.
func (in *input) layout(prompt string, cols, most int) (rows []string, row, col int) {
	if in.search != nil {
		prompt = "search \"" + visible(in.search.word) + "\": "
	}
	var b strings.Builder
	rows = strings.Split(ansi.HardwrapWc(prompt, cols-1, true), "\n")
	prompt, rows = rows[len(rows)-1], rows[:len(rows)-1]
	b.WriteString(prompt)
	x := width(prompt)
	const indent = "  "
	wrap := func() {
		rows = append(rows, b.String())
		b.Reset()
		b.WriteString(indent)
		x = len(indent)
	}
	for i, r := range in.text {
		shown, n := string(r), 1
		if r == '\n' {
			n = 0
		} else if r < 0x20 || r > 0x7e {
			shown = visible(shown)
			n = width(shown)
		}
		if x+n > cols-1 {
			wrap()
		}
		if i == in.at {
			row, col = len(rows), x
		}
		if r == '\n' {
			wrap()
			continue
		}
		b.WriteString(shown)
		x += n
	}
	if in.at == len(in.text) {
		row, col = len(rows), x
	}
	rows = append(rows, b.String())
	first := max(0, min(row-most/2, len(rows)-most))
	return rows[first:min(len(rows), first+most)], row - first, min(col, cols-1)
}

// width is how many columns a text takes, without escape sequences.
func width(text string) (n int) {
	for _, r := range printable.String(text) {
		n += vt.Columns(r)
	}
	return n
}
