package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/internal/vt"
)

// Sanitizer and String keep control sequences from the terminal: see printable.
type Sanitizer = printable.Sanitizer

// String is the text without control sequences.
func String(text string) string { return printable.String(text) }

// oneLine makes one line of text without control sequences: the first line that is not
// empty, and how many more there are.
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

// Columns returns how many terminal cells text takes.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += vt.Columns(r)
	}
	return n
}

// clip shortens text to width columns.
func clip(text string, width int) string {
	if Columns(text) <= width {
		return text
	}
	n := 0
	for i, r := range text {
		if n += vt.Columns(r); n > width-1 {
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
		if n += vt.Columns(runes[i]); n > width {
			return "…" + string(runes[i+1:])
		}
	}
	return text
}

// count writes a number with a noun: "1 turn", "1,234 tokens".
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

// Money writes an amount, with four digits after the point below a dollar.
func Money(usd float64) string {
	if usd != 0 && usd < 1 && usd > -1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Duration writes a duration in short form: "1.7s", "2m5s", "1h2m".
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

// telling are the arguments that say most about a call of a tool, the best first.
var telling = []string{"command", "cmd", "file_path", "filePath", "path", "notebook_path", "pattern", "query", "url", "description", "prompt", "name"}

// argument describes in one line a call of a tool. path says that it is a path, whose
// end matters most.
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

// output is the result of a tool in one line.
func output(raw json.RawMessage) string { return oneLine(plainJSON(raw)) }

// plainJSON is the text in a JSON value: a string itself, the texts of a list of content
// blocks, the text field of an object; else the JSON.
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
