package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// markdown shows Markdown on a terminal, line by line as an agent writes it: headings,
// lists, quotes, code, tables, emphasis, links. Lines are not wrapped, so that the terminal
// can do that again when its size changes, and what is copied is what was written. What it
// does not know, it shows as it is written.
//
// No Markdown library is linked: the tables that yuin/goldmark makes before main cost every
// start of amux 0.8 ms with tables and 0.35 ms without, and what glamour links 10 ms.
type markdown struct {
	width int
	fence string   // that ends the block of code
	table []string // rows, until the last one is there
}

const (
	italic    = "\x1b[3m"
	underline = "\x1b[4m"
	strike    = "\x1b[9m"
)

const (
	// mostRows bounds a table that is held until it ends.
	mostRows = 200
	// mostInline bounds a line in which emphasis is looked for, mostNested how deep.
	mostInline = 4 << 10
	mostNested = 3
)

// line shows a line, or holds it.
func (m *markdown) line(text string) string {
	trimmed := strings.TrimSpace(text)
	if m.fence == "" && strings.HasPrefix(trimmed, "|") && len(m.table) < mostRows {
		m.table = append(m.table, text)
		return ""
	}
	held := m.end()
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	switch fence := fenceOf(trimmed); {
	case m.fence != "" && strings.HasPrefix(trimmed, m.fence) && strings.Trim(trimmed, m.fence[:1]) == "":
		m.fence = ""
		return held
	case m.fence != "":
		return held + "  " + styled(cyan, text) + "\n"
	case fence != "":
		m.fence = fence
		return held
	case trimmed == "":
		return held + "\n"
	case isRule(trimmed):
		return held + styled(dim, strings.Repeat("─", min(max(m.width, 4), 40))) + "\n"
	}
	if level := len(trimmed) - len(strings.TrimLeft(trimmed, "#")); level >= 1 && level <= 6 && len(trimmed) > level && trimmed[level] == ' ' {
		style := bold
		if level == 1 {
			style += underline
		}
		return held + style + inline(strings.Trim(trimmed[level:], "# "), style, 0) + reset + "\n"
	}
	quote := ""
	for depth := 0; depth <= mostNested && strings.HasPrefix(trimmed, ">"); depth++ {
		quote += styled(dim, "│ ")
		trimmed = strings.TrimSpace(trimmed[1:])
	}
	if len(trimmed) > 2 && strings.ContainsRune("-*+", rune(trimmed[0])) && trimmed[1] == ' ' {
		trimmed = strings.TrimSpace(trimmed[2:])
		bullet := "• "
		for box, shown := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
			if rest, ok := strings.CutPrefix(trimmed, box); ok {
				bullet, trimmed = shown, rest
			}
		}
		indent += bullet
	}
	return held + indent + quote + inline(trimmed, "", 0) + "\n"
}

// held are the lines that are not shown yet.
func (m *markdown) held() string {
	if len(m.table) == 0 {
		return ""
	}
	return strings.Join(m.table, "\n") + "\n"
}

// end shows what was held.
func (m *markdown) end() string {
	rows := m.table
	m.table = nil
	if len(rows) == 0 {
		return ""
	}
	var cells [][]string
	var widths []int
	ruled := len(rows) > 1 && strings.Trim(strings.TrimSpace(rows[1]), "|-: ") == ""
	for i, row := range rows {
		if ruled && i == 1 {
			continue
		}
		style := ""
		if ruled && i == 0 {
			style = bold
		}
		parts := cellsOf(row)
		for j, part := range parts {
			parts[j] = style + inline(part, style, 0)
			if style != "" {
				parts[j] += reset
			}
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], Columns(String(parts[j])))
		}
		cells = append(cells, parts)
	}
	total := 0
	for _, w := range widths {
		total += w + 2
	}
	var b strings.Builder
	for i, row := range cells {
		if !ruled || m.width > 0 && total-2 > m.width {
			b.WriteString("| " + strings.Join(row, " | ") + " |\n")
			continue
		}
		line := ""
		for j, cell := range row {
			line += cell + strings.Repeat(" ", widths[j]-Columns(String(cell))+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if i == 0 {
			b.WriteString(styled(dim, strings.Repeat("─", total-2)) + "\n")
		}
	}
	return b.String()
}

// cellsOf takes a row of a table apart.
func cellsOf(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|"))
	}
	return cells
}

// fenceOf is the start of a line that begins a block of code.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, mark) {
			return line[:n]
		}
	}
	return ""
}

// isRule reports whether a line is one across the page.
func isRule(line string) bool {
	line = strings.ReplaceAll(line, " ", "")
	return len(line) >= 3 && strings.ContainsRune("-*_", rune(line[0])) && strings.Trim(line, line[:1]) == ""
}

func styled(style, text string) string { return style + text + reset }

// inline shows emphasis, code and links in a line. outer is the style around it.
func inline(text, outer string, depth int) string {
	if depth > mostNested || len(text) > mostInline {
		return text
	}
	var b strings.Builder
	open := unclosed{}
	span := func(style, inner string) { b.WriteString(style + inner + reset + outer) }
	for i := 0; i < len(text); {
		c := text[i]
		n := 1
		for i+n < len(text) && text[i+n] == c {
			n++
		}
		switch c {
		case '\\':
			if i+1 < len(text) && text[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(text[i+1])) || i+1 < len(text) && strings.IndexByte("`~|<>+=$^", text[i+1]) >= 0 {
				b.WriteByte(text[i+1])
				i += 2
				continue
			}
			n = 1
		case '`':
			if end := open.closing(text, i+n, c, n); end > 0 {
				span(cyan, strings.TrimSpace(text[i+n:end]))
				i = end + n
				continue
			}
		case '*', '_', '~':
			style := map[int]string{1: italic, 2: bold, 3: bold + italic}[n]
			if c == '~' {
				style = map[int]string{2: strike}[n]
			}
			if style == "" || i+n >= len(text) || text[i+n] == ' ' || c == '_' && i > 0 && isWordByte(text[i-1]) {
				break
			}
			if end := open.closing(text, i+n, c, n); end > 0 {
				span(style, inline(text[i+n:end], outer+style, depth+1))
				i = end + n
				continue
			}
		case '[':
			label, rest, ok := strings.Cut(text[i+1:], "](")
			address, _, closed := strings.Cut(rest, ")")
			if n == 1 && ok && closed && label != "" && !strings.ContainsAny(label, "[]") && !strings.Contains(address, " ") {
				span(underline, inline(label, outer+underline, depth+1))
				if address != label {
					b.WriteString(" (" + address + ")")
				}
				i += 1 + len(label) + 2 + len(address) + 1
				continue
			}
			n = 1
		default:
			n = 1
		}
		b.WriteString(text[i : i+n])
		i += n
	}
	return b.String()
}

func isWordByte(c byte) bool {
	return c >= utf8.RuneSelf || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unclosed are the marks that a line has no further end for, by how many they are: the
// line is not searched for those again.
type unclosed map[struct {
	mark byte
	n    int
}]bool

// closing returns where n marks end what begins at a place; 0 if nowhere.
func (u unclosed) closing(text string, from int, mark byte, n int) int {
	key := struct {
		mark byte
		n    int
	}{mark, n}
	if u[key] {
		return 0
	}
	for j := from; j < len(text); {
		run := 1
		for j+run < len(text) && text[j+run] == text[j] {
			run++
		}
		switch {
		case text[j] == mark && run == n && j > from && (mark == '`' || text[j-1] != ' ') &&
			(mark != '_' || j+n >= len(text) || !isWordByte(text[j+n])):
			return j
		case text[j] == '\\' && mark != '`':
			run = 2
		case text[j] == '`' && mark != '`':
			if end := u.closing(text, j+run, '`', run); end > 0 {
				run = end + run - j
			}
		}
		j += run
	}
	u[key] = true
	return 0
}
