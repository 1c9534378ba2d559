// Package keys turns the names of keys into what a terminal sends for them.
//
// A key is named as people write it: Enter, Esc, Up, C-c, M-x, S-Tab, F5, one
// character for itself; =TEXT is text as it stands.
package keys

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
)

// plainKeys send one byte each.
var plainKeys = map[string]string{
	"enter": "\r", "return": "\r", "esc": "\x1b", "escape": "\x1b", "tab": "\t", "space": " ", "backspace": "\x7f", "bspace": "\x7f",
}

// letterKeys send ESC [ and a letter, or ESC O and the letter in application mode.
var letterKeys = map[string]byte{
	"up": 'A', "down": 'B', "right": 'C', "left": 'D', "home": 'H', "end": 'F',
}

// functionKeys send ESC O and a letter.
var functionKeys = map[string]byte{"f1": 'P', "f2": 'Q', "f3": 'R', "f4": 'S'}

// numberKeys send ESC [ number ~.
var numberKeys = map[string]int{
	"insert": 2, "ins": 2, "delete": 3, "del": 3, "pageup": 5, "pgup": 5, "pagedown": 6, "pgdn": 6,
	"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}

const (
	shift = 1 << iota
	alt
	ctrl
)

// Bytes returns what a terminal sends for the keys. application says that the program
// has put the terminal's arrows into application mode. An unknown name is an error.
func Bytes(names []string, application bool) ([]byte, error) {
	var out []byte
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, "="); ok && text != "" {
			out = append(out, text...)
			continue
		}
		key, ok := Lookup(name, application)
		if !ok {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "unknown key %q", name).
				WithHint("for example: Enter, Esc, Tab, Up, PageDown, F5, C-c, M-x; text after =, as in \"=ls -l\"")
		}
		out = append(out, key...)
	}
	return out, nil
}

// HaveTwoForms reports whether what one of the keys sends depends on application mode.
func HaveTwoForms(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return letterKeys[strings.ToLower(name)] != 0 })
}

// Lookup returns what a terminal sends for one key.
func Lookup(name string, application bool) (string, bool) {
	mods := 0
	for len(name) > 2 && name[1] == '-' {
		mod := map[byte]int{'C': ctrl, 'M': alt, 'A': alt, 'S': shift}[name[0]]
		if mod == 0 || mods&mod != 0 {
			return "", false
		}
		mods |= mod
		name = name[2:]
	}
	lower := strings.ToLower(name)
	if letter, ok := letterKeys[lower]; ok {
		switch {
		case mods != 0:
			return fmt.Sprintf("\x1b[1;%d%c", mods+1, letter), true
		case application:
			return "\x1bO" + string(letter), true
		}
		return "\x1b[" + string(letter), true
	}
	if letter, ok := functionKeys[lower]; ok {
		if mods != 0 {
			return fmt.Sprintf("\x1b[1;%d%c", mods+1, letter), true
		}
		return "\x1bO" + string(letter), true
	}
	if number, ok := numberKeys[lower]; ok {
		if mods != 0 {
			return fmt.Sprintf("\x1b[%d;%d~", number, mods+1), true
		}
		return fmt.Sprintf("\x1b[%d~", number), true
	}
	prefix := ""
	if mods&alt != 0 {
		prefix = "\x1b"
	}
	key, named := plainKeys[lower]
	if lower == "tab" && mods&shift != 0 {
		return prefix + "\x1b[Z", mods&ctrl == 0
	}
	if !named {
		if utf8.RuneCountInString(name) != 1 || !utf8.ValidString(name) || mods&shift != 0 {
			return "", false
		}
		key = name
	}
	if mods&ctrl != 0 {
		code, ok := control(key)
		if !ok {
			return "", false
		}
		key = string(code)
	}
	return prefix + key, true
}

// control is what Ctrl makes of a key.
func control(key string) (rune, bool) {
	if len(key) != 1 {
		return 0, false
	}
	switch c := key[0]; {
	case c >= 'a' && c <= 'z':
		return rune(c - 'a' + 1), true
	case c >= '@' && c <= '_':
		return rune(c - '@'), true
	case c == ' ':
		return 0, true
	case c == '?':
		return 0x7f, true
	}
	return 0, false
}
