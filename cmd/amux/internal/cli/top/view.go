package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi/code"
)

// frame is how many lines are there beside the rows: title, heads, notice, keys.
const frame = 4

// View is all of the screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "amux top"
	return v
}

// lines are exactly those of the screen.
func (m *model) lines() []string {
	var lines []string
	if m.open != "" && m.found != nil {
		lines = m.detail()
	} else {
		lines = m.list()
	}
	room := max(0, m.height-2)
	for len(lines) < room {
		lines = append(lines, "")
	}
	lines = append(lines[:room], m.bottom(), m.style(dim, m.keys()))
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return lines
}

const (
	bold    = "1"
	dim     = "2"
	reverse = "7"
	red     = "31"
	yellow  = "33"
)

func (m *model) style(style, text string) string {
	if !m.color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// list is a line for each run.
func (m *model) list() []string {
	rows := m.visible()
	all := m.rows()
	waiting := 0
	for _, run := range m.live {
		if run.State == code.StateWaiting {
			waiting++
		}
	}
	title := fmt.Sprintf("amux top · %d live", len(m.live))
	if waiting > 0 {
		title += fmt.Sprintf(" · %d waiting for you", waiting)
	}
	title += fmt.Sprintf(" · %d ended", len(m.ended))
	if len(rows) < len(all) {
		title += fmt.Sprintf(" · %d to %d of %d", m.first+1, m.first+len(rows), len(all))
	}
	lines := []string{m.style(bold, title), m.style(dim, m.row("", "STATE", "RUN", "AGENT", "AGE", "COST", "NOW"))}
	for _, run := range rows {
		mark := " "
		if run.ID == m.selected {
			mark = ">"
		}
		cost := m.cost[run.ID]
		if run.End != nil && run.End.Cost != nil {
			cost = render.Money(run.End.Cost.USD)
		}
		now := m.doing[run.ID]
		if now == "" {
			now = strings.Join(strings.Fields(printable.Line(run.Prompt)), " ")
		}
		line := m.row(mark, strings.ReplaceAll(run.State, "_", " "), name(run), run.Agent, render.Age(m.now().Sub(run.Created)), cost, now)
		style := ""
		switch {
		case run.ID == m.selected:
			style = reverse
		case run.State == code.StateWaiting:
			style = yellow
		case run.State == code.StateFailed || run.State == code.StateLost:
			style = red
		case run.End != nil:
			style = dim
		}
		lines = append(lines, m.style(style, line))
	}
	switch {
	case len(all) > 0:
	case m.filter != "":
		lines = append(lines, "no run matches "+m.filter)
	case len(m.ended) > 0:
		lines = append(lines, "no live runs; A shows those that have ended")
	default:
		lines = append(lines, `no runs yet: amux run -d AGENT "…"`)
	}
	return lines
}

// row is a line in columns; the last takes what is left of the width.
func (m *model) row(mark, state, run, agent, age, cost, now string) string {
	cells := []struct {
		text  string
		width int
	}{{mark, 1}, {state, 9}, {run, 16}, {agent, 9}, {age, 4}, {cost, 8}}
	if m.width < 60 {
		cells = cells[:4]
	}
	var line strings.Builder
	for _, cell := range cells {
		text := ansi.Truncate(printable.Line(cell.text), cell.width, "…")
		line.WriteString(text + strings.Repeat(" ", cell.width-ansi.StringWidth(text)+1))
	}
	rest := max(0, m.width-ansi.StringWidth(line.String()))
	text := ansi.Truncate(printable.Line(now), rest, "…")
	return line.String() + text + strings.Repeat(" ", max(0, rest-ansi.StringWidth(text)))
}

// name is what a person calls a run.
func name(run host.RunInfo) string {
	if run.Name != "" {
		return printable.Line(run.Name)
	}
	return render.ShortID(run.ID)
}

// detail is the output of a run, and below it what it asks.
func (m *model) detail() []string {
	run := m.found.run
	title := fmt.Sprintf("%s · %s · %s · %s", name(run), run.Agent, strings.ReplaceAll(run.State, "_", " "), render.Age(m.now().Sub(run.Created)))
	if run.Ended == nil {
		if now := m.doing[run.ID]; now != "" {
			title += " · " + now
		}
	} else {
		title += " · took " + render.Duration(run.Ended.Sub(run.Created).Round(time.Second))
	}
	body := m.output()
	if q := m.question(); q != nil {
		body = append(body, "")
		for line := range strings.Lines(render.Question(*q, "", m.color)) {
			body = append(body, folded(strings.TrimRight(line, "\n"), m.width)...)
		}
	}
	room := max(1, m.height-frame)
	m.from = max(0, min(m.from, len(body)-room))
	end := len(body) - m.from
	start := max(0, end-room)
	above := ""
	if start > 0 || m.from > 0 {
		above = fmt.Sprintf("%d lines above, %d below", start, m.from)
	}
	return append([]string{m.style(bold, printable.Line(title)), m.style(dim, above)}, body[start:end]...)
}

// output is what the last events of the run show.
func (m *model) output() (lines []string) {
	if m.diff != "" {
		for line := range strings.Lines(m.diff) {
			lines = append(lines, folded(strings.TrimRight(line, "\n"), m.width)...)
		}
		return lines
	}
	var b strings.Builder
	r := render.New(render.Options{Out: &b, Err: &b, Color: m.color, Width: m.width, Live: true, Shared: true, Prompts: true})
	for _, e := range m.found.events {
		r.Event(e.Type, e.Raw)
	}
	r.Flush()
	for line := range strings.Lines(b.String()) {
		lines = append(lines, folded(strings.TrimRight(line, "\r\n"), m.width)...)
	}
	return lines
}

// folded is a line in as many as the screen needs for it.
func folded(line string, width int) []string {
	return strings.Split(ansi.Hardwrap(line, max(1, width), true), "\n")
}

// bottom is the line above the keys: a question of amux's own, or what came of a key.
func (m *model) bottom() string {
	switch {
	case m.sure != nil:
		return m.style(bold, printable.Line(m.sure.ask)+" y: yes, any other key: no")
	case m.typing:
		return "show only: " + printable.Line(m.filter) + "_"
	case m.notice != "" && m.bad:
		return m.style(red, "error: "+printable.Line(m.notice))
	case m.notice != "":
		return printable.Line(m.notice)
	case m.filter != "":
		return "only: " + printable.Line(m.filter) + "  (Esc: all)"
	}
	return ""
}

func (m *model) keys() string {
	if m.open == "" {
		return "↑↓ Enter open  / filter  A ended  i interrupt  p pause  s stop  K kill  q quit"
	}
	answer := ""
	if q := m.question(); q != nil && q.Approval {
		answer = "y once  a always  n deny  "
	}
	return answer + "↑↓ scroll  d diff  i interrupt  p pause  s stop  Esc back"
}
