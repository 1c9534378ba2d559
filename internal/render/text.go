package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// oneLine makes one line of text without control sequences: the first line that
// says something, and how many more there are.
func oneLine(text string) string {
	text = strings.TrimSpace(String(text))
	first, rest, more := strings.Cut(text, "\n")
	first = strings.Join(strings.Fields(first), " ")
	if !more {
		return first
	}
	n := 1 + strings.Count(strings.TrimSpace(rest), "\n")
	return fmt.Sprintf("%s (+%s)", first, count(int64(n), "line"))
}

// Columns is the width of text in a terminal, nearly: combining characters have
// none, East Asian wide ones and emoji two.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || unicode.Is(unicode.Cf, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// clip shortens text to width columns.
func clip(text string, width int) string {
	if Columns(text) <= width {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeColumns(r); n > width-1 {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}

// clipStart shortens text to width columns, keeping its end.
func clipStart(text string, width int) string {
	if Columns(text) <= width {
		return text
	}
	runes := []rune(text)
	n := 1
	for i := len(runes) - 1; i >= 0; i-- {
		if n += runeColumns(runes[i]); n > width {
			return "…" + string(runes[i+1:])
		}
	}
	return text
}

// count says a number with a noun: "1 turn", "1,234 tokens".
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}

// Number writes a number with commas between thousands.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Money writes an amount with as many digits as say something.
func Money(usd float64) string {
	if usd != 0 && usd < 1 && usd > -1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Duration writes a duration shortly: "1.7s", "2m5s", "1h2m".
func Duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}

// ShortID is the part of a run's id that people use: its last six characters.
func ShortID(id string) string {
	if len(id) > 6 {
		return id[len(id)-6:]
	}
	return id
}

// what each tool is called with, the most telling first.
var telling = []string{"command", "cmd", "file_path", "filePath", "path", "notebook_path", "pattern", "query", "url", "description", "prompt", "name"}

// argument says in one line what a tool was called with, and whether that is a
// path, whose end tells most.
func argument(input json.RawMessage) (text string, path bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return oneLine(plainJSON(input)), false
	}
	for _, key := range telling {
		if value, ok := fields[key]; ok {
			if text := oneLine(plainJSON(value)); text != "" {
				return text, strings.HasSuffix(strings.ToLower(key), "path")
			}
		}
	}
	if len(fields) == 0 {
		return "", false
	}
	return oneLine(string(input)), false
}

// output says in one line what a tool gave.
func output(raw json.RawMessage) string { return oneLine(plainJSON(raw)) }

// plainJSON is the text in a JSON value: of a string itself, of a list of content
// blocks their texts, of an object with one telling field that; else the JSON.
func plainJSON(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	case '[':
		var blocks []json.RawMessage
		if json.Unmarshal(raw, &blocks) == nil {
			var parts []string
			for _, block := range blocks {
				parts = append(parts, plainJSON(block))
			}
			return strings.Join(parts, "\n")
		}
	case '{':
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil {
			for _, key := range []string{"text", "content", "output", "stdout", "result", "message"} {
				if value := fields[key]; len(value) > 0 && (value[0] == '"' || value[0] == '[') {
					return plainJSON(value)
				}
			}
		}
	}
	return string(raw)
}
