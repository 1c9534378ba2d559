package vt

import (
	"unicode"

	"golang.org/x/text/width"
)

// Columns returns how many terminal cells a character takes: 0 for combining and
// invisible characters, 2 for wide ones (East Asian and emoji), else 1. Characters
// whose width Unicode calls ambiguous count as 1, as in terminals that are not set
// up for East Asian text.
func Columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff: // Hangul vowels and finals join the syllable before them
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
