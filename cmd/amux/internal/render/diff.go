package render

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// PatchLine is a line of a patch, with its line break, if any: without control sequences,
// perhaps in colours.
func PatchLine(line string, color bool) string {
	text, end := strings.CutSuffix(line, "\n")
	style := patchStyle(text)
	if text = String(text); color && style != "" && text != "" {
		text = style + text + reset
	}
	if end {
		text += "\n"
	}
	return text
}

func patchStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff --git "):
		return bold
	case strings.HasPrefix(line, "@@"):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return ""
}

// diff compares two texts by lines, as a unified diff without headers. Places without a
// change are left out; a line "@@" stands between what is shown.
func diff(before, after string) (lines []string) {
	before, after = ended(before), ended(after)
	unified, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil { // the comparison is wrong
		return slices.Concat(marked("-", before), marked("+", after))
	}
	for i, hunk := range unified.Hunks {
		if i > 0 || hunk.FromLine > 1 {
			lines = append(lines, "@@")
		}
		for _, line := range hunk.Lines {
			mark := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+", udiff.Equal: " "}[line.Kind]
			lines = append(lines, mark+strings.TrimSuffix(line.Content, "\n"))
		}
	}
	return lines
}

// ended is a text whose last line ends.
func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

func marked(mark, text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, mark+strings.TrimSuffix(line, "\n"))
	}
	return lines
}
