package render

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Dash is the text without control sequences; "-" if it is empty.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return String(text)
}

// Plural writes a number with a noun: "1 run", "2 runs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Changed says how much was changed: 4 files +52 −7.
func Changed(files, added, deleted int) string {
	return fmt.Sprintf("%s +%d −%d", Plural(files, "file"), added, deleted)
}

// Excerpt is the start of a text in one line of at most n columns, without control
// sequences.
func Excerpt(text string, n int) string {
	if len(text) > 16*n {
		text = text[:16*n]
	}
	return clip(strings.Join(strings.Fields(String(strings.ToValidUTF8(text, ""))), " "), n)
}

// Age writes roughly how long ago something was: "5m", "3d".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// WholeLine is the text with a line break at its end.
func WholeLine(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Wrap writes a paragraph in lines of at most width columns.
func Wrap(w io.Writer, text string, width int) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && Columns(line)+1+Columns(word) > width {
			fmt.Fprintln(w, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}
