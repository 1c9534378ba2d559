package acp

import (
	"strconv"
	"strings"
)

// hunk is the change from one text to another as one hunk of a unified diff,
// without lines around it.
func hunk(before, after string) string {
	a, b := lines(before), lines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	if len(a)+len(b) == 0 {
		return ""
	}
	var s strings.Builder
	s.WriteString("@@ -" + span(head, len(a)) + " +" + span(head, len(b)) + " @@\n")
	for _, line := range a {
		s.WriteString("-" + line + "\n")
	}
	for _, line := range b {
		s.WriteString("+" + line + "\n")
	}
	return s.String()
}

func span(before, n int) string {
	if n > 0 {
		before++
	}
	return strconv.Itoa(before) + "," + strconv.Itoa(n)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
