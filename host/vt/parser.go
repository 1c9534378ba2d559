// Package vt understands what programs send to a terminal: control sequences of
// ECMA-48 and DEC's terminals, in UTF-8. A Stripper takes them out of text, a
// Terminal follows cursor and modes and answers what a program asks of its
// terminal, a Filter takes those questions out. A Screen is a Terminal that knows
// what is shown as well: it is for who looks, and no run has one.
//
// All work on a stream in pieces: where the pieces end makes no difference. Codes
// from U+0080 to U+009F are control characters as characters, never as bytes:
// such bytes are parts of others in UTF-8. Nothing here is safe for concurrent
// use.
package vt

import "unicode/utf8"

// handler is told what a parser has found.
type handler interface {
	// print gets characters that are shown, or bytes that are none in UTF-8; raw
	// is how they came.
	print(r rune, raw []byte)
	// control gets the control characters that begin no sequence.
	control(c rune)
	// sequence gets what was introduced by ESC or one of its one-character forms.
	sequence(s *sequence)
}

// sequence is one that has ended.
type sequence struct {
	// kind is its introducer: '[' for CSI, ']' OSC, 'P' DCS, 'X' SOS, '^' PM, '_'
	// APC; 0 for ESC and one final character.
	kind byte
	// body is what follows the introducer; of an ESC or CSI, without the final
	// character, and of a string, without its end.
	body []byte
	// final ends an ESC or CSI.
	final byte
	bell  bool // a string was ended by BEL
	cut   bool // body is not all: it was longer than maxBody
}

// maxBody is how much of a sequence is kept. Those that mean something here are
// short.
const maxBody = 256

type state byte

const (
	ground  state = iota
	escape        // after ESC
	control       // after CSI
	str           // in a string, up to ST, BEL or CAN
	strEsc        // after ESC in a string
)

// parser is the state machine. The zero value is ready.
type parser struct {
	state state
	seq   sequence
	buf   [maxBody]byte
	part  [utf8.UTFMax]byte // a character that is not whole
	nPart int
	raw   [utf8.UTFMax]byte // the one that is being looked at
}

// idle reports whether the next byte begins something new.
func (p *parser) idle() bool { return p.state == ground && p.nPart == 0 }

// advance takes a byte.
func (p *parser) advance(b byte, h handler) {
	if p.nPart == 0 && b < utf8.RuneSelf {
		p.raw[0] = b
		p.rune(rune(b), p.raw[:1], h)
		return
	}
	p.part[p.nPart] = b
	p.nPart++
	for p.nPart > 0 && utf8.FullRune(p.part[:p.nPart]) {
		p.cut(h)
	}
}

// flush gives out the bytes of a character that was never finished.
func (p *parser) flush(h handler) {
	for p.nPart > 0 {
		p.cut(h)
	}
}

// cut takes the first character of part, or its first byte if that begins none:
// what follows an invalid byte begins anew.
func (p *parser) cut(h handler) {
	r, size := utf8.DecodeRune(p.part[:p.nPart])
	raw := p.raw[:copy(p.raw[:], p.part[:size])]
	p.nPart = copy(p.part[:], p.part[size:p.nPart])
	p.rune(r, raw, h)
}

// rune takes a character and its bytes, or a byte that is none.
func (p *parser) rune(r rune, raw []byte, h handler) {
	if p.state == str || p.state == strEsc {
		p.inString(r, raw, h)
		return
	}
	switch {
	case r == 0x1b:
		p.begin(escape, 0)
	case r == 0x18, r == 0x1a: // CAN, SUB: as if the sequence had not begun
		p.state = ground
		h.control(r)
	case r < 0x20:
		h.control(r) // in the midst of a sequence, too
	case r == 0x7f:
	case r >= 0x80 && r <= 0x9f:
		p.single(byte(r)-0x40, h, r)
	case p.state == escape:
		p.inEscape(r, raw, h)
	case p.state == control:
		p.inControl(r, raw, h)
	default:
		h.print(r, raw)
	}
}

// begin begins a sequence.
func (p *parser) begin(s state, kind byte) {
	p.state = s
	p.seq = sequence{kind: kind, body: p.buf[:0]}
}

// add keeps part of a sequence, as far as there is room.
func (p *parser) add(raw []byte) {
	if len(p.seq.body)+len(raw) > maxBody {
		p.seq.cut = true
		return
	}
	p.seq.body = append(p.seq.body, raw...)
}

func (p *parser) end(h handler, final byte) {
	p.state = ground
	p.seq.final = final
	h.sequence(&p.seq)
}

// single is what ESC and a letter, or the control character c for it, introduce.
func (p *parser) single(letter byte, h handler, c rune) {
	switch letter {
	case '[':
		p.begin(control, '[')
	case ']', 'P', 'X', '^', '_':
		p.begin(str, letter)
	default:
		p.state = ground
		h.control(c)
	}
}

func (p *parser) inEscape(r rune, raw []byte, h handler) {
	switch {
	case r > 0x7e:
		p.state = ground
		h.print(r, raw)
	case r <= 0x2f:
		p.add(raw)
	case len(p.seq.body) == 0 && (r == '[' || r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_'):
		p.single(byte(r), h, 0)
	default:
		p.end(h, byte(r))
	}
}

func (p *parser) inControl(r rune, raw []byte, h handler) {
	switch {
	case r > 0x7e:
		p.state = ground
		h.print(r, raw)
	case r <= 0x3f:
		p.add(raw)
	default:
		p.end(h, byte(r))
	}
}

// inString takes a character of a string. A line feed ends those that have no
// lines, so that one that was never meant to begin does not hide what follows.
func (p *parser) inString(r rune, raw []byte, h handler) {
	if p.state == strEsc {
		if r == '\\' {
			p.end(h, 0)
			return
		}
		p.begin(escape, 0) // the string was given up
		p.rune(r, raw, h)
		return
	}
	switch {
	case r == 0x1b:
		p.state = strEsc
	case r == 0x9c:
		p.end(h, 0)
	case r == 0x07 && p.seq.kind != 'P':
		p.seq.bell = true
		p.end(h, 0)
	case r == 0x18, r == 0x1a:
		p.state = ground
		h.control(r)
	case r == '\n' && p.seq.kind != 'P':
		p.state = ground
		h.control(r)
	default:
		p.add(raw)
	}
}
