package vt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/internal/sys/ansi"
)

// Screen is a Terminal with what is shown on it. Nobody needs one but who looks.
type Screen struct {
	Terminal
	grid grid
}

// NewScreen returns the screen of a terminal that has just been switched on.
func NewScreen(cols, rows int) *Screen {
	s := &Screen{}
	s.canvas = &s.grid
	s.reset(cols, rows)
	return s
}

// Write shows the next piece of the program's output.
func (s *Screen) Write(piece []byte) { s.Answer(piece) }

// Text is what is shown, a line for each of the terminal's own, without the spaces
// and the empty lines that nothing follows.
func (s *Screen) Text() string {
	var text, line []byte
	empty := 0
	for _, cells := range s.grid.lines {
		line = line[:0]
		for _, c := range cells {
			line = c.append(line)
		}
		if line = bytes.TrimRight(line, " "); len(line) == 0 {
			empty++
			continue
		}
		text = append(text, bytes.Repeat([]byte{'\n'}, empty)...)
		text = append(append(text, line...), '\n')
		empty = 0
	}
	return string(text)
}

// AppendPicture appends what makes another terminal of that many rows, one that
// has just been reset, show the same and go on from there. Columns that it does
// not have it cuts itself; of rows it gets those around the cursor.
func (s *Screen) AppendPicture(dst []byte, rows int) []byte {
	if s.Alternate() {
		dst = append(dst, "\x1b[?1049h"...)
	}
	dst = append(dst, "\x1b[?7l\x1b[H\x1b[2J"...) // without wrapping
	top := max(0, s.y-rows+1)
	for i, line := range s.grid.lines[top:min(len(s.grid.lines), top+rows)] {
		blank := 0
		for blank < len(line) && line[len(line)-1-blank] == (cell{}) {
			blank++
		}
		dst = fmt.Appendf(dst, "\x1b[%d;1H", i+1)
		last := style{}
		for _, c := range line[:len(line)-blank] {
			if c.style != last {
				dst = c.style.append(dst)
				last = c.style
			}
			dst = c.append(dst)
		}
		if last != (style{}) {
			dst = append(dst, "\x1b[m"...)
		}
	}
	if s.top != 0 || s.bottom != s.rows-1 {
		dst = fmt.Appendf(dst, "\x1b[%d;%dr", s.top+1, s.bottom+1)
	}
	dst = fmt.Appendf(dst, "\x1b[%d;%dH", s.y-top+1, s.x+1)
	dst = s.grid.style.append(dst)
	return s.AppendModes(dst)
}

// canvas is what a Terminal draws on, if somebody looks.
type canvas interface {
	reset(cols, rows int)
	// resize gives it another size; y and saved are the lines of the cursors.
	resize(cols, rows, y, saved int)
	// write puts n characters of that many columns into a line: those of text, or r
	// each time.
	write(x, y, n, width int, text []byte, r rune)
	// mark adds to the character before x.
	mark(x, y int, r rune)
	// scroll moves the lines from top to bottom up by n, or down.
	scroll(top, bottom, n int)
	alternate(on bool)
	// save keeps how the next character looks, restore returns to it: of the main
	// or of the alternate screen.
	save(alternate bool)
	restore(alternate bool)
	shift(out bool)
	sequence(t *Terminal, s *ansi.Sequence)
}

var _ canvas = (*grid)(nil)

// grid is the cells of a screen.
type grid struct {
	lines, other [][]cell // other is the main screen while the alternate one is shown
	pen
	insert bool
	saved  [2]pen // of the main and of the alternate screen
}

// pen is how the next character looks.
type pen struct {
	style    style
	charsets [2]bool // G0 and G1 are that of lines
	out      bool    // G1 is in use
}

// cell is one place. The zero value is blank.
type cell struct {
	char  rune   // 0: a space; second: the right half of the character before
	marks string // combining characters
	style style
}

// second is the right half of a wide character.
const second = -1

func (c cell) append(dst []byte) []byte {
	switch c.char {
	case 0:
		return append(dst, ' ')
	case second:
		return dst
	}
	return append(utf8.AppendRune(dst, c.char), c.marks...)
}

func blankLines(cols, rows int) [][]cell {
	lines := make([][]cell, rows)
	for i := range lines {
		lines[i] = make([]cell, cols)
	}
	return lines
}

func (g *grid) reset(cols, rows int) { *g = grid{lines: blankLines(cols, rows)} }

func (g *grid) resize(cols, rows, y, saved int) {
	if g.other != nil {
		g.lines = fit(g.lines, cols, rows, 0)
		g.other = fit(g.other, cols, rows, saved)
		return
	}
	g.lines = fit(g.lines, cols, rows, y)
}

// fit cuts lines or adds to them. The line y stays: others above it go first.
func fit(lines [][]cell, cols, rows, y int) [][]cell {
	if over := y - rows + 1; over > 0 {
		lines = lines[min(over, len(lines)):]
	}
	lines = lines[:min(len(lines), rows)]
	for i, line := range lines {
		switch {
		case len(line) > cols:
			line = line[:cols:cols]
			if cols < len(lines[i]) && lines[i][cols].char == second {
				line[cols-1] = cell{style: line[cols-1].style}
			}
			lines[i] = line
		case len(line) < cols:
			lines[i] = append(line, make([]cell, cols-len(line))...)
		}
	}
	return append(lines, blankLines(cols, rows-len(lines))...)
}

func (g *grid) write(x, y, n, width int, text []byte, r rune) {
	line := g.lines[y]
	if width > len(line) {
		return
	}
	if g.insert {
		g.open(line, x, n*width)
	}
	for i := range n {
		if text != nil {
			r = rune(text[i])
		}
		if g.charsets[0] && !g.out || g.charsets[1] && g.out {
			if r >= 0x5f && r <= 0x7e {
				r = lineCharacters[r-0x5f]
			}
		}
		at := x + i*width
		if at >= len(line) {
			return
		}
		g.split(line, at)
		line[at] = cell{char: r, style: g.style}
		if r == ' ' {
			line[at].char = 0
		}
		if width == 2 && at+1 < len(line) {
			g.split(line, at+1)
			line[at] = cell{char: r, style: g.style}
			line[at+1] = cell{char: second, style: g.style}
		}
	}
}

// lineCharacters are those of DEC's set for drawing lines, from _ on.
var lineCharacters = []rune(" ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// split blanks both halves of a wide character of which one is at x.
func (g *grid) split(line []cell, x int) {
	if line[x].char == second && x > 0 {
		line[x-1] = cell{style: line[x-1].style}
		line[x] = cell{style: line[x].style}
	}
	if x+1 < len(line) && line[x+1].char == second {
		line[x] = cell{style: line[x].style}
		line[x+1] = cell{style: line[x+1].style}
	}
}

// cut blanks both halves of a wide character that the border before x divides.
func (g *grid) cut(line []cell, x int) {
	if x < len(line) && line[x].char == second {
		g.split(line, x)
	}
}

func (g *grid) mark(x, y int, r rune) {
	line := g.lines[y]
	if x > 0 && line[x].char == second {
		x--
	}
	if c := &line[x]; c.char > 0 && len(c.marks) < 32 {
		c.marks += string(r)
	}
}

// blank is what is left where something was erased.
func (g *grid) blank() cell { return cell{style: style{bg: g.style.bg}} }

func (g *grid) erase(line []cell) {
	for i := range line {
		line[i] = g.blank()
	}
}

func (g *grid) scroll(top, bottom, n int) {
	part := g.lines[top : bottom+1]
	switch {
	case n > 0:
		n = min(n, len(part))
		gone := slices.Clone(part[:n])
		copy(part, part[n:])
		copy(part[len(part)-n:], gone)
		part = part[len(part)-n:]
	case n < 0:
		n = min(-n, len(part))
		gone := slices.Clone(part[len(part)-n:])
		copy(part[n:], part)
		copy(part, gone)
		part = part[:n]
	default:
		return
	}
	for _, line := range part {
		g.erase(line)
	}
}

func (g *grid) alternate(on bool) {
	switch {
	case on && g.other == nil:
		g.other = g.lines
		g.lines = blankLines(len(g.other[0]), len(g.other))
	case !on && g.other != nil:
		g.lines, g.other = g.other, nil
	}
}

func (g *grid) save(alternate bool) { *g.pens(alternate) = g.pen }

func (g *grid) restore(alternate bool) { g.pen = *g.pens(alternate) }

func (g *grid) pens(alternate bool) *pen {
	if alternate {
		return &g.saved[1]
	}
	return &g.saved[0]
}

func (g *grid) shift(out bool) { g.out = out }

// open makes room for n cells at x, close takes n away.
func (g *grid) open(line []cell, x, n int) {
	n = min(n, len(line)-x)
	g.cut(line, x)
	g.cut(line, len(line)-n)
	copy(line[x+n:], line[x:])
	g.erase(line[x : x+n])
}

func (g *grid) close(line []cell, x, n int) {
	n = min(n, len(line)-x)
	g.cut(line, x)
	g.cut(line, x+n)
	copy(line[x:], line[x+n:])
	g.erase(line[len(line)-n:])
}

func (g *grid) sequence(t *Terminal, s *ansi.Sequence) {
	if s.Kind == 0 {
		switch {
		case len(s.Body) == 1 && (s.Body[0] == '(' || s.Body[0] == ')'):
			g.charsets[s.Body[0]-'('] = s.Final == '0'
		case string(s.Body) == "#" && s.Final == '8':
			for _, line := range g.lines {
				for i := range line {
					line[i] = cell{char: 'E'}
				}
			}
		}
		return
	}
	if s.Kind != '[' {
		return
	}
	body := s.Body
	if len(body) > 0 && body[0] == '?' && (s.Final == 'J' || s.Final == 'K') {
		body = body[1:]
	}
	if string(body) == "!" && s.Final == 'p' { // soft reset
		g.pen, g.saved, g.insert = pen{}, [2]pen{}, false
		return
	}
	if len(body) > 0 && body[0] != ';' && (body[0] < '0' || body[0] > '9') {
		return
	}
	if bytes.ContainsAny(body, " !\"#$%&'()*+,-./") {
		return
	}
	first := number(body, 0)
	n := max(1, first)
	line := g.lines[t.y]
	from := t.x // of what is erased to the end: at a pending wrap, nothing of this line
	if t.wrap {
		from = t.cols
	}
	within := t.y >= t.top && t.y <= t.bottom
	switch s.Final {
	case 'm':
		g.style.set(body)
	case 'h', 'l':
		if first == 4 {
			g.insert = s.Final == 'h'
		}
	case 'J':
		switch first {
		case 0:
			g.eraseIn(line, from, len(line))
			for _, below := range g.lines[t.y+1:] {
				g.erase(below)
			}
		case 1:
			g.eraseIn(line, 0, t.x+1)
			for _, above := range g.lines[:t.y] {
				g.erase(above)
			}
		case 2:
			for _, each := range g.lines {
				g.erase(each)
			}
		}
	case 'K':
		switch first {
		case 0:
			g.eraseIn(line, from, len(line))
		case 1:
			g.eraseIn(line, 0, t.x+1)
		case 2:
			g.erase(line)
		}
	case 'X':
		g.eraseIn(line, t.x, min(t.x+n, len(line)))
	case '@':
		g.open(line, t.x, n)
	case 'P':
		g.close(line, t.x, n)
	case 'L':
		if within {
			g.scroll(t.y, t.bottom, -n)
		}
	case 'M':
		if within {
			g.scroll(t.y, t.bottom, n)
		}
	case 'S':
		g.scroll(t.top, t.bottom, n)
	case 'T':
		g.scroll(t.top, t.bottom, -n)
	}
}

// eraseIn erases cells, and the other halves of wide characters at the borders.
func (g *grid) eraseIn(line []cell, from, to int) {
	g.cut(line, from)
	g.cut(line, to)
	g.erase(line[from:to])
}

// style is how a character looks.
type style struct {
	fg, bg color
	attrs  uint16 // bit n is set by SGR n
}

// color is 0 for the terminal's own, else its kind and value.
type color uint32

const (
	indexed color = 1 << 24
	direct  color = 2 << 24
)

// append appends what makes a terminal write so, whatever it has done before.
func (s style) append(dst []byte) []byte {
	dst = append(dst, "\x1b[0"...)
	for n := 1; n <= 9; n++ {
		if s.attrs&(1<<n) != 0 {
			dst = fmt.Appendf(dst, ";%d", n)
		}
	}
	for i, c := range []color{s.fg, s.bg} {
		v := c & 0xffffff
		switch {
		case c&direct != 0:
			dst = fmt.Appendf(dst, ";%d;2;%d;%d;%d", 38+10*i, v>>16, v>>8&0xff, v&0xff)
		case c&indexed != 0:
			dst = fmt.Appendf(dst, ";%d;5;%d", 38+10*i, v)
		}
	}
	return append(dst, 'm')
}

// set does what SGR says.
func (s *style) set(body []byte) {
	params := strings.Split(string(body), ";")
	for i := 0; i < len(params); i++ {
		parts := strings.Split(params[i], ":")
		n := number([]byte(parts[0]), 0)
		switch {
		case n == 0:
			*s = style{}
		case n == 4 && len(parts) > 1 && parts[1] == "0":
			s.attrs &^= 1 << 4
		case n >= 1 && n <= 9:
			s.attrs |= 1 << n
		case n == 21: // underlined twice
			s.attrs |= 1 << 4
		case n == 22:
			s.attrs &^= 1<<1 | 1<<2
		case n == 25:
			s.attrs &^= 1<<5 | 1<<6
		case n >= 23 && n <= 29:
			s.attrs &^= 1 << (n - 20)
		case n >= 30 && n <= 37:
			s.fg = indexed | color(n-30)
		case n >= 40 && n <= 47:
			s.bg = indexed | color(n-40)
		case n >= 90 && n <= 97:
			s.fg = indexed | color(n-90+8)
		case n >= 100 && n <= 107:
			s.bg = indexed | color(n-100+8)
		case n == 39:
			s.fg = 0
		case n == 49:
			s.bg = 0
		case n == 38, n == 48, n == 58:
			var c color
			if len(parts) > 1 {
				if parts = parts[1:]; len(parts) == 5 { // 2, a colour space, and three values
					parts = slices.Delete(parts, 1, 2)
				}
				c, _ = colorOf(parts)
			} else {
				var used int
				c, used = colorOf(params[i+1:])
				i += used
			}
			switch n {
			case 38:
				s.fg = c
			case 48:
				s.bg = c
			}
		}
	}
}

// colorOf reads "5, index" or "2, red, green, blue", and says how many it used.
func colorOf(parts []string) (color, int) {
	value := func(i int) color { return color(number([]byte(parts[i]), 0)) & 0xff }
	switch {
	case len(parts) >= 2 && parts[0] == "5":
		return indexed | value(1), 2
	case len(parts) >= 4 && parts[0] == "2":
		return direct | value(1)<<16 | value(2)<<8 | value(3), 4
	}
	return 0, len(parts)
}
