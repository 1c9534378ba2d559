// Package ansi recognizes the control sequences of ECMA-48 in a stream of UTF-8, as
// terminals do. What becomes of them is its callers' business. It knows nothing of
// amux.
//
// Where the pieces of the stream end makes no difference. Codes from U+0080 to U+009F
// are control characters as characters, never as bytes: such bytes are parts of others
// in UTF-8. Nothing here is safe for concurrent use.
package ansi

import "unicode/utf8"

// Handler gets what a Parser has found.
type Handler interface {
	// Print gets a character that is shown, or a byte that is not valid UTF-8; raw is
	// how it came, valid until Print returns.
	Print(r rune, raw []byte)
	// Control gets a control character that begins no sequence.
	Control(c rune)
	// Sequence gets what ESC or one of its one-character forms introduced, valid until
	// Sequence returns.
	Sequence(s *Sequence)
}

// Sequence is a control sequence that has ended.
type Sequence struct {
	// Kind is its introducer: '[' for CSI, ']' OSC, 'P' DCS, 'X' SOS, '^' PM, '_'
	// APC; 0 for ESC and one final character.
	Kind byte
	// Body is what follows the introducer; of an ESC or CSI, without the final
	// character, and of a string, without its end.
	Body []byte
	// Final ends an ESC or CSI.
	Final byte
	Bell  bool // a string was ended by BEL
	Cut   bool // Body is not all: it was longer than MaxBody
}

// MaxBody is how much of a sequence is kept: those that a terminal acts on are short.
const MaxBody = 256

type state byte

const (
	ground  state = iota
	escape        // after ESC
	control       // after CSI
	str           // in a string, up to ST, BEL or CAN
	strEsc        // after ESC in a string
)

// Parser is the state machine. The zero value is ready.
type Parser struct {
	state state
	seq   Sequence
	buf   [MaxBody]byte
	part  [utf8.UTFMax]byte // a character that is not whole
	nPart int
	raw   [utf8.UTFMax]byte // the one that is being looked at
}

// Idle reports whether the next byte begins something new: plain ASCII then needs no
// Advance.
func (p *Parser) Idle() bool { return p.state == ground && p.nPart == 0 }

// Overlong reports whether the stream is in a string that is longer than MaxBody.
func (p *Parser) Overlong() bool { return p.state == str && p.seq.Cut }

// Abandon drops the sequence that has begun.
func (p *Parser) Abandon() { p.state = ground }

// Advance takes the next byte and hands h what ends with it.
func (p *Parser) Advance(b byte, h Handler) {
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

// Flush hands h the bytes of a character that was never finished.
func (p *Parser) Flush(h Handler) {
	for p.nPart > 0 {
		p.cut(h)
	}
}

// cut takes the first character of part, or its first byte if that begins none:
// what follows an invalid byte is decoded again.
func (p *Parser) cut(h Handler) {
	r, size := utf8.DecodeRune(p.part[:p.nPart])
	raw := p.raw[:copy(p.raw[:], p.part[:size])]
	p.nPart = copy(p.part[:], p.part[size:p.nPart])
	p.rune(r, raw, h)
}

// rune takes a character and its bytes, or a byte that is not valid.
func (p *Parser) rune(r rune, raw []byte, h Handler) {
	if p.state == str || p.state == strEsc {
		p.inString(r, raw, h)
		return
	}
	switch {
	case r == 0x1b:
		p.begin(escape, 0)
	case r == 0x18, r == 0x1a: // CAN, SUB: as if the sequence had not begun
		p.state = ground
		h.Control(r)
	case r < 0x20:
		h.Control(r) // also inside a sequence
	case r == 0x7f:
	case r >= 0x80 && r <= 0x9f:
		p.single(byte(r)-0x40, h, r)
	case p.state == escape:
		p.inEscape(r, raw, h)
	case p.state == control:
		p.inControl(r, raw, h)
	default:
		h.Print(r, raw)
	}
}

// begin begins a sequence.
func (p *Parser) begin(s state, kind byte) {
	p.state = s
	p.seq = Sequence{Kind: kind, Body: p.buf[:0]}
}

// add keeps part of a sequence, as far as there is room.
func (p *Parser) add(raw []byte) {
	if len(p.seq.Body)+len(raw) > MaxBody {
		p.seq.Cut = true
		return
	}
	p.seq.Body = append(p.seq.Body, raw...)
}

func (p *Parser) end(h Handler, final byte) {
	p.state = ground
	p.seq.Final = final
	h.Sequence(&p.seq)
}

// single is what ESC and a letter, or the control character c for it, introduce.
func (p *Parser) single(letter byte, h Handler, c rune) {
	switch letter {
	case '[':
		p.begin(control, '[')
	case ']', 'P', 'X', '^', '_':
		p.begin(str, letter)
	default:
		p.state = ground
		h.Control(c)
	}
}

func (p *Parser) inEscape(r rune, raw []byte, h Handler) {
	switch {
	case r > 0x7e:
		p.state = ground
		h.Print(r, raw)
	case r <= 0x2f:
		p.add(raw)
	case len(p.seq.Body) == 0 && (r == '[' || r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_'):
		p.single(byte(r), h, 0)
	default:
		p.end(h, byte(r))
	}
}

func (p *Parser) inControl(r rune, raw []byte, h Handler) {
	switch {
	case r > 0x7e:
		p.state = ground
		h.Print(r, raw)
	case r <= 0x3f:
		p.add(raw)
	default:
		p.end(h, byte(r))
	}
}

// inString takes a character of a string. A line feed ends those that have no
// lines, so that one that was never meant to begin does not hide what follows.
func (p *Parser) inString(r rune, raw []byte, h Handler) {
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
	case r == 0x07 && p.seq.Kind != 'P':
		p.seq.Bell = true
		p.end(h, 0)
	case r == 0x18, r == 0x1a:
		p.state = ground
		h.Control(r)
	case r == '\n' && p.seq.Kind != 'P':
		p.state = ground
		h.Control(r)
	default:
		p.add(raw)
	}
}
