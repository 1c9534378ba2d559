package render

import (
	"slices"
	"strings"
)

const (
	// diffContext is how many lines are shown around a change.
	diffContext = 3
	// mostDiffCells bounds the work of a comparison. Texts that differ in more are shown
	// as all removed and all added.
	mostDiffCells = 4 << 20
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
func diff(before, after string) []string {
	a, b := diffLines(before), diffLines(after)
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var all []string
	for _, line := range a[:start] {
		all = append(all, " "+line)
	}
	all = append(all, changes(a[start:len(a)-end], b[start:len(b)-end])...)
	for _, line := range a[len(a)-end:] {
		all = append(all, " "+line)
	}
	return nearChanges(all)
}

func diffLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// changes is the shortest way from a to b.
func changes(a, b []string) (lines []string) {
	width := len(b) + 1
	if (len(a)+1)*width > mostDiffCells {
		return slices.Concat(marked("-", a), marked("+", b))
	}
	// common[i*width+j] is how many lines a[i:] and b[j:] share.
	common := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			lines = append(lines, " "+a[i])
			i, j = i+1, j+1
		case common[(i+1)*width+j] >= common[i*width+j+1]:
			lines = append(lines, "-"+a[i])
			i++
		default:
			lines = append(lines, "+"+b[j])
			j++
		}
	}
	return slices.Concat(lines, marked("-", a[i:]), marked("+", b[j:]))
}

func marked(mark string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = mark + line
	}
	return all
}

// nearChanges keeps the changes and what is around them.
func nearChanges(lines []string) (kept []string) {
	last := -1 // the last change so far
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] != ' ' {
			last = i
		}
		near[i] = last >= 0 && i-last <= diffContext
	}
	last = len(lines) + diffContext + 1
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i][0] != ' ' {
			last = i
		}
		near[i] = near[i] || last-i <= diffContext
	}
	for i, line := range lines {
		if !near[i] {
			continue
		}
		if i > 0 && !near[i-1] {
			kept = append(kept, "@@")
		}
		kept = append(kept, line)
	}
	return kept
}
