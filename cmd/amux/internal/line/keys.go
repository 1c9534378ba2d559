package line

import (
	"bytes"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// keyReader takes what a terminal sends apart into keys.
type keyReader struct {
	rest    []byte // the start of a key
	pasting bool
	last    time.Time
}

// pasteGap is after how long without more a paste is over: its end may have been dropped
// with what was typed before a question.
const pasteGap = time.Second

// read yields each key as the terminal sends it. Pasted text is one key that begins with
// pasteBegin; a long paste comes as several.
func (k *keyReader) read(typed []byte) iter.Seq[string] {
	if now := time.Now(); k.pasting && now.Sub(k.last) > pasteGap {
		k.pasting, k.rest = false, nil
	}
	k.last = time.Now()
	b := append(k.rest, typed...)
	k.rest = nil
	return func(yield func(string) bool) {
		for len(b) > 0 {
			key, n := "", 0
			if k.pasting {
				key, n = k.pasted(b)
			} else if n = keyLength(b); string(b[:n]) == pasteBegin {
				k.pasting = true
			} else {
				key = string(b[:n])
			}
			if n == 0 {
				k.rest = bytes.Clone(b)
				return
			}
			if b = b[n:]; key != "" && !yield(key) {
				return
			}
		}
	}
}

// pasted is the next piece of pasted text.
func (k *keyReader) pasted(b []byte) (key string, n int) {
	if i := bytes.Index(b, []byte(pasteEnd)); i >= 0 {
		k.pasting = false
		return pasteBegin + string(b[:i]), i + len(pasteEnd)
	}
	n = len(b)
	for i := max(0, n-len(pasteEnd)+1); i < n; i++ { // the start of its end, or of a character
		if strings.HasPrefix(pasteEnd, string(b[i:])) || utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			n = i
			break
		}
	}
	return pasteBegin + string(b[:n]), n
}

// longestKey bounds the sequence of a key: what is longer is not one.
const longestKey = 32

// keyLength is how many bytes the first key has; 0 if its end is missing.
func keyLength(b []byte) int {
	if b[0] != 0x1b {
		if !utf8.FullRune(b) {
			return 0
		}
		_, n := utf8.DecodeRune(b)
		return n
	}
	if len(b) == 1 {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b) && i < longestKey; i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		if len(b) >= longestKey {
			return longestKey
		}
		return 0
	case 'O':
		if len(b) < 3 {
			return 0
		}
		return 3
	case 0x1b:
		return 1
	}
	if n := keyLength(b[1:]); n > 0 { // with Alt
		return n + 1
	}
	return 0
}
