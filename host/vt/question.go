package vt

import (
	"bytes"
	"fmt"
	"slices"
)

// asks reports whether a sequence asks the terminal for something, or sets up a
// keyboard protocol that this one does not have.
func (s *sequence) asks() bool {
	if s.cut {
		return false
	}
	body := string(s.body)
	mark := byte(0)
	if len(body) > 0 {
		mark = body[0]
	}
	switch s.kind {
	case 0:
		return s.final == 'Z' && body == ""
	case '[':
		switch s.final {
		case 'n': // status, place of the cursor; CSI > n sets a resource of xterm
			return mark != '>'
		case 'c': // what are you
			return true
		case 'q': // CSI > q: name and version
			return mark == '>'
		case 'p': // is this mode set
			return bytes.HasSuffix(s.body, []byte("$"))
		case 'u': // the keyboard protocol of kitty
			return mark == '?' || mark == '>' || mark == '<' || mark == '='
		case 't': // size and place of the window, its title
			n := number(s.body, 0)
			return n == 11 || n >= 13 && n <= 21
		case 'x':
			return body == "" || body == "0" || body == "1"
		}
	case ']': // a colour, the clipboard
		return bytes.HasSuffix(s.body, []byte(";?"))
	case 'P': // DECRQSS, XTGETTCAP
		return bytes.HasPrefix(s.body, []byte("$q")) || bytes.HasPrefix(s.body, []byte("+q"))
	case '_': // the pictures of kitty
		return mark == 'G' && bytes.Contains(s.body, []byte("a=q"))
	}
	return false
}

// answer answers, if the terminal has an answer.
func (t *Terminal) answer(s *sequence) {
	if !s.asks() {
		return
	}
	body := string(s.body)
	say := func(format string, args ...any) { t.answers = fmt.Appendf(t.answers, format, args...) }
	y := t.y + 1
	if t.modes[modeOrigin] {
		y -= t.top
	}
	switch s.kind {
	case 0:
		say("\x1b[?62;22c")
	case '[':
		switch {
		case s.final == 'n' && body == "5":
			say("\x1b[0n")
		case s.final == 'n' && body == "6":
			say("\x1b[%d;%dR", y, t.x+1)
		case s.final == 'n' && body == "?6":
			say("\x1b[?%d;%d;1R", y, t.x+1)
		case s.final == 'c' && (body == "" || body == "0"):
			say("\x1b[?62;22c") // a VT220 with colours
		case s.final == 'c' && (body == ">" || body == ">0"):
			say("\x1b[>1;10;0c")
		case s.final == 'c' && (body == "=" || body == "=0"):
			say("\x1bP!|00000000\x1b\\")
		case s.final == 'q' && (body == ">" || body == ">0"):
			say("\x1bP>|amux\x1b\\")
		case s.final == 'p' && body[0] == '?':
			mode := number(s.body[1:len(body)-1], 0)
			value := 0
			if slices.Contains(known, mode) {
				if value = 2; t.modes[mode] {
					value = 1
				}
			}
			say("\x1b[?%d;%d$y", mode, value)
		case s.final == 'p':
			say("\x1b[%d;0$y", number(s.body[:len(body)-1], 0))
		case s.final == 't' && body == "11":
			say("\x1b[1t")
		case s.final == 't' && body == "18":
			say("\x1b[8;%d;%dt", t.rows, t.cols)
		case s.final == 't' && body == "19":
			say("\x1b[9;%d;%dt", t.rows, t.cols)
		}
	case ']':
		end := "\x1b\\"
		if s.bell {
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
