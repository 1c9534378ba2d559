package eventlog

import (
	"errors"
	"fmt"
)

// Errors of an object that an adapter sent.
var errObject = errors.New("not one JSON object on one line")

// object checks, piece by piece, that bytes are one JSON object without raw
// control characters (so that it stays on its line) and without the keys that
// are the host's own. It holds no part of the text, so a 64 MiB event costs no
// memory here.
type object struct {
	state  objectState
	stack  []byte // '{' and '[' of what is open
	key    []byte // the top-level key being read
	hex    int    // digits of \u still to come
	word   string // what is left of true, false, null
	number numberState
	inKey  bool
}

type objectState uint8

const (
	wantObject     objectState = iota // before the first {
	wantKeyOrEnd                      // after {
	wantKey                           // after , in an object
	wantColon                         // after a key
	wantValue                         // after : or , in an array
	wantValueOrEnd                    // after [
	wantCommaOrEnd                    // after a value
	inString                          // inside "
	inEscape                          // after \
	inNumber                          // inside a number
	inWord                            // inside true, false, null
	finished                          // after the last }
)

type numberState uint8

const (
	numSign    numberState = iota // after -
	numZero                       // after a leading 0
	numInt                        // inside the integer
	numDot                        // after .
	numFrac                       // inside the fraction
	numExp                        // after e
	numExpSign                    // after e+
	numExpInt                     // inside the exponent
)

const maxDepth = 10_000

// reserved are the keys that only the host writes.
var reserved = map[string]bool{"type": true, "run_id": true, "seq": true, "time": true, "agent": true}

// write takes the next piece.
func (o *object) write(b []byte) error {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch o.state {
		case inString:
			// The hot loop: run over plain text.
			for c >= 0x20 && c != '"' && c != '\\' {
				if o.inKey {
					o.key = append(o.key, c)
				}
				if i++; i == len(b) {
					return nil
				}
				c = b[i]
			}
			switch {
			case c == '"':
				if err := o.endString(); err != nil {
					return err
				}
			case c == '\\':
				o.state = inEscape
			default:
				return errObject
			}
			continue
		case inEscape:
			if err := o.escape(c); err != nil {
				return err
			}
			continue
		case inNumber:
			if more, err := o.digit(c); err != nil {
				return err
			} else if more {
				continue
			}
			o.state = wantCommaOrEnd
		case inWord:
			if c != o.word[0] {
				return errObject
			}
			if o.word = o.word[1:]; o.word == "" {
				o.state = wantCommaOrEnd
			}
			continue
		}
		if c == ' ' {
			continue
		}
		if err := o.structure(c); err != nil {
			return err
		}
	}
	return nil
}

// end reports whether the object is whole.
func (o *object) end() error {
	if o.state != finished {
		return errObject
	}
	return nil
}

func (o *object) structure(c byte) error {
	switch o.state {
	case wantObject:
		if c != '{' {
			return errObject
		}
		return o.open(c)
	case wantKeyOrEnd, wantKey:
		if c == '"' {
			o.state, o.inKey, o.key = inString, len(o.stack) == 1, o.key[:0]
			o.word = "key"
			return nil
		}
		if c == '}' && o.state == wantKeyOrEnd {
			return o.close(c)
		}
	case wantColon:
		if c == ':' {
			o.state = wantValue
			return nil
		}
	case wantValue, wantValueOrEnd:
		if c == ']' && o.state == wantValueOrEnd {
			return o.close(c)
		}
		return o.value(c)
	case wantCommaOrEnd:
		if c == ',' {
			if o.stack[len(o.stack)-1] == '{' {
				o.state = wantKey
			} else {
				o.state = wantValue
			}
			return nil
		}
		if c == '}' || c == ']' {
			return o.close(c)
		}
	}
	return errObject
}

func (o *object) open(c byte) error {
	if len(o.stack) == maxDepth {
		return errObject
	}
	o.stack = append(o.stack, c)
	if c == '{' {
		o.state = wantKeyOrEnd
	} else {
		o.state = wantValueOrEnd
	}
	return nil
}

func (o *object) close(c byte) error {
	if top := o.stack[len(o.stack)-1]; top == '{' && c != '}' || top == '[' && c != ']' {
		return errObject
	}
	if o.stack = o.stack[:len(o.stack)-1]; len(o.stack) == 0 {
		o.state = finished
	} else {
		o.state = wantCommaOrEnd
	}
	return nil
}

func (o *object) value(c byte) error {
	switch {
	case c == '"':
		o.state, o.inKey, o.word = inString, false, ""
	case c == '{' || c == '[':
		return o.open(c)
	case c == '-':
		o.state, o.number = inNumber, numSign
	case c == '0':
		o.state, o.number = inNumber, numZero
	case c >= '1' && c <= '9':
		o.state, o.number = inNumber, numInt
	case c == 't':
		o.state, o.word = inWord, "rue"
	case c == 'f':
		o.state, o.word = inWord, "alse"
	case c == 'n':
		o.state, o.word = inWord, "ull"
	default:
		return errObject
	}
	return nil
}

func (o *object) endString() error {
	if o.word != "key" {
		o.state = wantCommaOrEnd
		return nil
	}
	if o.inKey && reserved[string(o.key)] {
		return fmt.Errorf("the key %q is the host's own", o.key)
	}
	o.state, o.inKey, o.word = wantColon, false, ""
	return nil
}

func (o *object) escape(c byte) error {
	if o.hex > 0 {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return errObject
		}
		if o.hex--; o.hex == 0 {
			o.state = inString
		}
		return nil
	}
	if o.inKey {
		// No field of ours needs an escape in its name, and none may hide a
		// reserved one behind it.
		return errObject
	}
	switch c {
	case 'u':
		o.hex = 4
		return nil
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		o.state = inString
		return nil
	}
	return errObject
}

// digit takes a byte inside a number; more is false if c is not part of it.
func (o *object) digit(c byte) (more bool, err error) {
	isDigit := c >= '0' && c <= '9'
	exp := c == 'e' || c == 'E'
	switch o.number {
	case numSign:
		switch {
		case c == '0':
			o.number = numZero
		case isDigit:
			o.number = numInt
		default:
			return false, errObject
		}
		return true, nil
	case numZero, numInt:
		switch {
		case isDigit && o.number == numInt:
		case isDigit:
			return false, errObject
		case c == '.':
			o.number = numDot
		case exp:
			o.number = numExp
		default:
			return false, nil
		}
		return true, nil
	case numDot, numFrac:
		switch {
		case isDigit:
			o.number = numFrac
		case exp && o.number == numFrac:
			o.number = numExp
		case o.number == numDot:
			return false, errObject
		default:
			return false, nil
		}
		return true, nil
	default: // numExp, numExpSign, numExpInt
		switch {
		case isDigit:
			o.number = numExpInt
		case (c == '+' || c == '-') && o.number == numExp:
			o.number = numExpSign
		case o.number != numExpInt:
			return false, errObject
		default:
			return false, nil
		}
		return true, nil
	}
}
