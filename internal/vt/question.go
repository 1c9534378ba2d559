package vt

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/amux-dev/amux/internal/sys/ansi"
)

// asks reports whether a sequence asks the terminal for something, or sets up a
// keyboard protocol that this one does not have.
func asks(s *ansi.Sequence) bool {
	if s.Cut {
		return false
	}
	body := string(s.Body)
	mark := byte(0)
	if len(body) > 0 {
		mark = body[0]
	}
	switch s.Kind {
	case 0:
		return s.Final == 'Z' && body == ""
	case '[':
		switch s.Final {
		case 'n': // status, place of the cursor; CSI > n sets a resource of xterm
			return mark != '>'
		case 'c': // what are you
			return true
		case 'q': // CSI > q: name and version
			return mark == '>'
		case 'p': // is this mode set
			return bytes.HasSuffix(s.Body, []byte("$"))
		case 'u': // the keyboard protocol of kitty
			return mark == '?' || mark == '>' || mark == '<' || mark == '='
		case 't': // size and place of the window, its title
			n := number(s.Body, 0)
			return n == 11 || n >= 13 && n <= 21
		case 'x':
			return body == "" || body == "0" || body == "1"
		}
	case ']': // a colour, the clipboard
		return bytes.HasSuffix(s.Body, []byte(";?"))
	case 'P': // DECRQSS, XTGETTCAP
		return bytes.HasPrefix(s.Body, []byte("$q")) || bytes.HasPrefix(s.Body, []byte("+q"))
	case '_': // the pictures of kitty
		return mark == 'G' && bytes.Contains(s.Body, []byte("a=q"))
	}
	return false
}

// answer answers, if the terminal has an answer.
func (t *Terminal) answer(s *ansi.Sequence) {
	if !asks(s) {
		return
	}
	body := string(s.Body)
	say := func(format string, args ...any) { t.answers = fmt.Appendf(t.answers, format, args...) }
	y := t.y + 1
	if t.modes[modeOrigin] {
		y -= t.top
	}
	switch s.Kind {
	case 0:
		say("\x1b[?62;22c")
	case '[':
		switch {
		case s.Final == 'n' && body == "5":
			say("\x1b[0n")
		case s.Final == 'n' && body == "6":
			say("\x1b[%d;%dR", y, t.x+1)
		case s.Final == 'n' && body == "?6":
			say("\x1b[?%d;%d;1R", y, t.x+1)
		case s.Final == 'c' && (body == "" || body == "0"):
			say("\x1b[?62;22c") // a VT220 with colours
		case s.Final == 'c' && (body == ">" || body == ">0"):
			say("\x1b[>1;10;0c")
		case s.Final == 'c' && (body == "=" || body == "=0"):
			say("\x1bP!|00000000\x1b\\")
		case s.Final == 'q' && (body == ">" || body == ">0"):
			say("\x1bP>|amux\x1b\\")
		case s.Final == 'p' && body[0] == '?':
			mode := number(s.Body[1:len(body)-1], 0)
			value := 0
			if slices.Contains(known, mode) {
				if value = 2; t.modes[mode] {
					value = 1
				}
			}
			say("\x1b[?%d;%d$y", mode, value)
		case s.Final == 'p':
			say("\x1b[%d;0$y", number(s.Body[:len(body)-1], 0))
		case s.Final == 't' && body == "11":
			say("\x1b[1t")
		case s.Final == 't' && body == "18":
			say("\x1b[8;%d;%dt", t.rows, t.cols)
		case s.Final == 't' && body == "19":
			say("\x1b[9;%d;%dt", t.rows, t.cols)
		}
	case ']':
		end := "\x1b\\"
		if s.Bell {
			end = "\a"
		}
		switch body {
		case "10;?", "12;?":
			say("\x1b]%s;rgb:ffff/ffff/ffff%s", body[:2], end)
		case "11;?":
			say("\x1b]11;rgb:0000/0000/0000%s", end)
		}
	case 'P': // not known. Nothing that was asked is repeated: whoever is shown a file would type it.
		say("\x1bP0%cr\x1b\\", body[0])
	}
}
