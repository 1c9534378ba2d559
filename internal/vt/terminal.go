// Package vt follows what programs send to a terminal. A Terminal follows cursor and
// modes and answers what a program asks of its terminal; a Filter takes out those
// questions; a Stripper leaves the text alone. A Screen is a Terminal that also knows
// what is shown: it is for people who look, and no run has one.
//
// All work on a stream in pieces: where the pieces end makes no difference. Nothing here
// is safe for concurrent use.
package vt

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/amux-dev/amux/internal/sys/ansi"
)

// Terminal follows what a program sends: where the cursor is and which modes are
// set, not what is on the screen. It answers the program's questions as a
// terminal does that is an xterm with 256 colours, dark, without a mouse that
// moves or a window of its own.
type Terminal struct {
	parser  ansi.Parser
	answers []byte

	cols, rows  int
	x, y        int       // from 0
	wrap        bool      // the last column was written: the next character begins a line
	top, bottom int       // margins, from 0, both inclusive
	saved       [2]cursor // of the main and of the alternate screen
	tabs        tabStops
	newline     bool // LNM: a line feed is a carriage return too
	last        int  // columns of the last character, which REP may repeat; 0: something else came since
	modes       map[int]bool
	lastRune    rune
	keypad      bool   // in application mode
	shape       int    // of the cursor: DECSCUSR
	canvas      canvas // nil: nobody looks
}

type cursor struct {
	x, y   int
	origin bool
}

// New returns a terminal that has just been switched on.
func New(cols, rows int) *Terminal {
	t := &Terminal{}
	t.reset(cols, rows)
	return t
}

func (t *Terminal) reset(cols, rows int) {
	*t = Terminal{
		parser: t.parser, answers: t.answers, cols: cols, rows: rows, bottom: rows - 1,
		modes: map[int]bool{modeWrap: true, modeCursor: true}, canvas: t.canvas,
	}
	if t.canvas != nil {
		t.canvas.reset(cols, rows)
	}
}

// DEC's private modes that mean something here.
const (
	modeCursorKeys = 1
	modeOrigin     = 6
	modeWrap       = 7
	modeCursor     = 25
	modeFocus      = 1004
	modePaste      = 2004
)

// known are the modes that an attached terminal is put into, and asked about.
var known = []int{modeCursorKeys, modeOrigin, modeWrap, 9, 12, modeCursor, 47, 1000, 1002, 1003, modeFocus, 1005, 1006, 1015, 1047, 1048, 1049, modePaste, 2026}

// Resize gives it another size.
func (t *Terminal) Resize(cols, rows int) {
	if t.canvas != nil {
		t.canvas.resize(cols, rows, t.y, t.saved[0].y)
	}
	t.cols, t.rows, t.top, t.bottom = cols, rows, 0, rows-1
	t.move(t.x, t.y)
}

// Answer takes the next piece of the program's output and returns what the
// terminal says to it, if anything. It is valid until the next call.
func (t *Terminal) Answer(piece []byte) []byte {
	t.answers = t.answers[:0]
	for i := 0; i < len(piece); i++ {
		if t.parser.Idle() {
			start := i
			for i < len(piece) && piece[i] >= 0x20 && piece[i] < 0x7f {
				i++
			}
			t.put(i-start, 1, piece[start:i], 0)
			if i == len(piece) {
				break
			}
		}
		t.parser.Advance(piece[i], (*terminal)(t))
	}
	return t.answers
}

// Size is how many columns and rows it has.
func (t *Terminal) Size() (cols, rows int) { return t.cols, t.rows }

// Cursor is where the cursor is, from 0.
func (t *Terminal) Cursor() (x, y int) { return t.x, t.y }

// Alternate reports whether the program has taken the whole screen for itself.
func (t *Terminal) Alternate() bool { return t.modes[47] || t.modes[1047] || t.modes[1049] }

// CursorKeys reports whether the program has asked for the application's form of
// the arrow keys.
func (t *Terminal) CursorKeys() bool { return t.modes[modeCursorKeys] }

// AppendModes appends what puts another terminal, which has just been reset, into
// the modes of this one; the screen and the cursor's place are not among them.
func (t *Terminal) AppendModes(dst []byte) []byte {
	for _, mode := range known {
		on, seen := t.modes[mode]
		switch {
		case !seen, mode == 47, mode == 1047, mode == 1048, mode == 1049, mode == modeOrigin, mode == 2026:
		case on:
			dst = fmt.Appendf(dst, "\x1b[?%dh", mode)
		default:
			dst = fmt.Appendf(dst, "\x1b[?%dl", mode)
		}
	}
	if t.keypad {
		dst = append(dst, "\x1b="...)
	}
	if t.shape != 0 {
		dst = fmt.Appendf(dst, "\x1b[%d q", t.shape)
	}
	return dst
}

// put writes n characters of that many columns: those of text, or r each time.
func (t *Terminal) put(n, width int, text []byte, r rune) {
	if n == 0 {
		return
	}
	t.last, t.lastRune = width, r
	if text != nil {
		t.lastRune = rune(text[n-1])
	}
	for n > 0 {
		if t.wrap || t.x+width > t.cols {
			if !t.modes[modeWrap] {
				if width == 1 { // the last of them stays in the last column; a wide one has no room
					t.x, t.wrap = t.cols-1, true
					if t.canvas != nil {
						t.canvas.write(t.x, t.y, 1, 1, nil, t.lastRune)
					}
				}
				return
			}
			t.x = 0
			t.lineFeed()
		}
		line := max(1, min(n, (t.cols-t.x)/width))
		if t.canvas != nil {
			t.canvas.write(t.x, t.y, line, width, text, r)
		}
		if text != nil {
			text = text[line:]
		}
		t.x += line * width
		if t.wrap = t.x >= t.cols; t.wrap {
			t.x = t.cols - 1
		}
		n -= line
	}
}

func (t *Terminal) lineFeed() {
	t.wrap = false
	switch {
	case t.y == t.bottom:
		if t.canvas != nil {
			t.canvas.scroll(t.top, t.bottom, 1)
		}
	case t.y < t.rows-1:
		t.y++
	}
}

// move puts the cursor somewhere on the screen.
func (t *Terminal) move(x, y int) {
	t.x, t.y = max(0, min(x, t.cols-1)), max(0, min(y, t.rows-1))
	t.wrap = false
}

// moveTo is move to a place that the program has named.
func (t *Terminal) moveTo(x, y int) {
	if t.modes[modeOrigin] {
		y = min(y+t.top, t.bottom)
	}
	t.move(x, y)
}

// vertical moves by lines. It stops at the margins, where the cursor is within
// them.
func (t *Terminal) vertical(n int) {
	first, last := 0, t.rows-1
	if t.y >= t.top {
		first = t.top
	}
	if t.y <= t.bottom {
		last = t.bottom
	}
	t.move(t.x, max(first, min(t.y+n, last)))
}

// terminal is the Terminal as the parser's handler.
type terminal Terminal

func (h *terminal) Print(r rune, raw []byte) {
	t := (*Terminal)(h)
	width := Columns(r)
	if width > 0 {
		t.put(1, width, nil, r)
		return
	}
	if t.x == 0 { // nothing to join: it stands alone
		t.put(1, 1, nil, r)
		return
	}
	if t.canvas != nil {
		x := t.x - 1
		if t.wrap {
			x = t.x
		}
		t.canvas.mark(x, t.y, r)
	}
}

func (h *terminal) Control(c rune) {
	t := (*Terminal)(h)
	t.last = 0
	switch c {
	case '\b':
		t.move(t.x-1, t.y)
	case '\t':
		if !t.wrap {
			t.move(t.tabs.next(t.x, 1, t.cols), t.y)
		}
	case '\n', '\v', '\f':
		if t.newline {
			t.x = 0
		}
		t.lineFeed()
	case 0x84:
		t.lineFeed()
	case '\r':
		t.move(0, t.y)
	case 0x85:
		t.x = 0
		t.lineFeed()
	case 0x88:
		t.tabs.change(t.x, t.cols, true)
	case 0x8d:
		t.reverse()
	case 0x0e, 0x0f:
		if t.canvas != nil {
			t.canvas.shift(c == 0x0e)
		}
	}
}

// reverse is a line feed upwards.
func (t *Terminal) reverse() {
	t.wrap = false
	switch {
	case t.y == t.top:
		if t.canvas != nil {
			t.canvas.scroll(t.top, t.bottom, -1)
		}
	case t.y > 0:
		t.y--
	}
}

func (h *terminal) Sequence(s *ansi.Sequence) {
	t := (*Terminal)(h)
	if s.Cut {
		return
	}
	if t.canvas != nil {
		t.canvas.sequence(t, s)
	}
	switch s.Kind {
	case 0:
		t.escape(s)
	case '[':
		t.control(s)
	}
	t.last = 0
	t.answer(s)
}

func (t *Terminal) escape(s *ansi.Sequence) {
	if len(s.Body) > 0 {
		if string(s.Body) == "#" && s.Final == '8' { // fills the screen
			t.move(0, 0)
		}
		return
	}
	switch s.Final {
	case '7':
		t.save()
	case '8':
		t.restore()
	case 'D':
		t.lineFeed()
	case 'E':
		t.x = 0
		t.lineFeed()
	case 'H':
		t.tabs.change(t.x, t.cols, true)
	case 'M':
		t.reverse()
	case '=', '>':
		t.keypad = s.Final == '='
	case 'c':
		t.reset(t.cols, t.rows)
	}
}

// saves is where this screen keeps its cursor: each of the two has its own.
func (t *Terminal) saves() *cursor {
	if t.Alternate() {
		return &t.saved[1]
	}
	return &t.saved[0]
}

func (t *Terminal) save() {
	*t.saves() = cursor{t.x, t.y, t.modes[modeOrigin]}
	if t.canvas != nil {
		t.canvas.save(t.Alternate())
	}
}

func (t *Terminal) restore() {
	saved := *t.saves()
	t.modes[modeOrigin] = saved.origin
	t.move(saved.x, saved.y)
	if t.canvas != nil {
		t.canvas.restore(t.Alternate())
	}
}

// control does what a control sequence does to cursor and modes.
func (t *Terminal) control(s *ansi.Sequence) {
	if body, ok := bytes.CutPrefix(s.Body, []byte("?")); ok {
		if s.Final == 'h' || s.Final == 'l' {
			for mode := range bytes.SplitSeq(body, []byte(";")) {
				t.set(number(mode, 0), s.Final == 'h')
			}
		}
		return
	}
	if string(s.Body) == "!" && s.Final == 'p' { // soft reset
		t.modes[modeOrigin], t.modes[modeWrap], t.modes[modeCursor], t.modes[modeCursorKeys] = false, true, true, false
		t.keypad, t.top, t.bottom, t.saved = false, 0, t.rows-1, [2]cursor{}
		return
	}
	if body, ok := bytes.CutSuffix(s.Body, []byte(" ")); ok {
		if s.Final == 'q' {
			t.shape = min(number(body, 0), 6)
		}
		return
	}
	if len(s.Body) > 0 && (s.Body[0] < '0' || s.Body[0] > '9') && s.Body[0] != ';' {
		return
	}
	first, second, _ := bytes.Cut(s.Body, []byte(";"))
	n := max(1, number(first, 1))
	switch s.Final {
	case 'A':
		t.vertical(-n)
	case 'B', 'e':
		t.vertical(n)
	case 'C', 'a':
		t.move(t.x+n, t.y)
	case 'D':
		t.move(t.x-n, t.y)
	case 'E':
		t.x = 0
		t.vertical(n)
	case 'F':
		t.x = 0
		t.vertical(-n)
	case 'G', '`':
		t.move(n-1, t.y)
	case 'H', 'f':
		t.moveTo(max(1, number(second, 1))-1, n-1)
	case 'd':
		t.moveTo(t.x, n-1)
	case 'I', 'Z':
		switch {
		case t.wrap: // past the last column, where no tab leads
		case s.Final == 'I':
			t.move(t.tabs.next(t.x, n, t.cols), t.y)
		default:
			t.move(t.tabs.previous(t.x, n), t.y)
		}
	case 'g':
		switch number(first, 0) {
		case 0:
			t.tabs.change(t.x, t.cols, false)
		case 3:
			t.tabs.clear(t.cols)
		}
	case 'h', 'l':
		for mode := range bytes.SplitSeq(s.Body, []byte(";")) {
			if number(mode, 0) == 20 {
				t.newline = s.Final == 'h'
			}
		}
	case '@', 'P', 'X':
		t.wrap = false
	case 'L', 'M':
		t.move(0, t.y)
	case 'b':
		if t.last > 0 {
			t.put(n, t.last, nil, t.lastRune)
		}
	case 'r':
		bottom := number(second, t.rows)
		if bottom = min(bottom, t.rows); bottom == 0 {
			bottom = t.rows
		}
		if n < bottom {
			t.top, t.bottom = n-1, bottom-1
			t.moveTo(0, 0)
		}
	case 's':
		t.save()
	case 'u':
		t.restore()
	}
}

func (t *Terminal) set(mode int, on bool) {
	if !slices.Contains(known, mode) {
		return
	}
	before := t.modes[mode]
	t.modes[mode] = on
	if t.canvas != nil && mode != 1048 {
		defer func() { t.canvas.alternate(t.Alternate()) }()
	}
	switch mode {
	case modeOrigin:
		t.moveTo(0, 0)
	case 1048:
		if on {
			t.save()
		} else {
			t.restore()
		}
	case 1049: // the main screen's cursor, saved before the switch and restored after
		if on && !before {
			t.modes[mode] = false
			t.save()
			t.modes[mode] = true
		} else if !on && before {
			t.restore()
		}
	}
}

// number reads a parameter; missing is its value if there is none. Parts after a
// colon are not looked at.
func number(text []byte, missing int) int {
	text, _, _ = bytes.Cut(text, []byte(":"))
	text, _, _ = bytes.Cut(text, []byte(";"))
	if len(text) == 0 {
		return missing
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return missing
	}
	return min(n, 1<<15)
}
