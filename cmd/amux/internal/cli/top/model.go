package top

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// model is what is on screen.
type model struct {
	records *records
	color   bool
	now     func() time.Time

	width, height int
	live, ended   []host.RunInfo
	doing, cost   map[string]string
	all           bool   // ended runs are shown too
	filter        string // what rows must contain
	typing        bool   // the filter
	selected      string // run
	first         int    // the row at the top

	open  string // the run whose output is shown
	found *opened
	from  int    // how many lines above the end the output is shown
	diff  string // is shown in place of the output
	// shown is the question on screen, and since when: what was typed before is no answer.
	shown string
	since time.Time

	sure   *command // waits for y
	notice string
	bad    bool // the notice tells of an error
}

// command is what y will do.
type command struct {
	ask string
	cmd tea.Cmd
}

func newModel(r *records, runs []host.RunInfo, color bool) *model {
	m := &model{records: r, color: color, now: time.Now, width: 80, height: 24, doing: map[string]string{}}
	r.listed, r.live, r.spent = time.Now(), map[string]bool{}, map[string]*tally{}
	for _, run := range runs {
		if app.HasEnded(run) {
			m.ended = append(m.ended, run)
		} else {
			m.live = append(m.live, run)
			r.live[run.ID] = true
		}
	}
	m.sort()
	return m
}

func (m *model) Init() tea.Cmd { return m.look() }

// look looks at the records beside the screen.
func (m *model) look() tea.Cmd {
	var onScreen []string
	for _, run := range m.visible() {
		onScreen = append(onScreen, run.ID)
	}
	open := m.open
	return func() tea.Msg { return m.records.look(onScreen, open) }
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case look:
		m.take(msg)
		return m, tea.Tick(every, func(time.Time) tea.Msg { return tick{} })
	case tick:
		return m, m.look()
	case *opened:
		m.show(msg)
	case diff:
		switch m.bad = msg.err != nil; {
		case m.bad:
			m.notice = pluginapi.AsError(msg.err).Error()
		case msg.text == "":
			m.notice = "nothing has changed so far"
		case msg.id == m.open:
			m.diff, m.from = msg.text, 1<<30 // from its beginning
		}
	case done:
		m.bad = msg.err != nil
		if m.notice = msg.what; m.bad {
			m.notice = pluginapi.AsError(msg.err).Error()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

type tick struct{}

// take takes in what a look has found.
func (m *model) take(l look) {
	if m.bad = l.err != nil; m.bad {
		m.notice = l.err.Error()
		return
	}
	m.live = l.live
	if l.all {
		m.ended = l.ended
	} else {
		for _, run := range l.ended {
			m.ended = slices.DeleteFunc(m.ended, func(r host.RunInfo) bool { return r.ID == run.ID })
			m.ended = append(m.ended, run)
		}
	}
	m.sort()
	m.doing, m.cost = l.doing, l.cost
	m.show(l.open)
}

// show shows the output of the run that is open.
func (m *model) show(o *opened) {
	if o != nil && o.run.ID == m.open {
		m.found = o
	}
	question := ""
	if q := m.question(); q != nil {
		question = q.ID
	}
	if question != m.shown {
		m.shown, m.since, m.sure = question, m.now(), nil
	}
}

// sort puts those first that wait for a person, then the newest.
func (m *model) sort() {
	rank := func(r host.RunInfo) int {
		if r.State == code.StateWaiting {
			return 0
		}
		return 1
	}
	order := func(a, b host.RunInfo) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return b.Created.Compare(a.Created)
	}
	slices.SortStableFunc(m.live, order)
	slices.SortStableFunc(m.ended, order)
}

// rows are the runs that are listed.
func (m *model) rows() []host.RunInfo {
	rows := m.live
	if m.all {
		rows = slices.Concat(m.live, m.ended)
	}
	if m.filter == "" {
		return rows
	}
	var some []host.RunInfo
	word := strings.ToLower(m.filter)
	for _, r := range rows {
		if strings.Contains(strings.ToLower(strings.Join(append([]string{r.ID, r.Name, r.Agent, r.State, r.Prompt}, r.Tags...), " ")), word) {
			some = append(some, r)
		}
	}
	return some
}

// visible are the rows on screen. It keeps the selected one among them.
func (m *model) visible() []host.RunInfo {
	rows := m.rows()
	at := max(0, m.index(rows))
	room := max(1, m.height-frame)
	m.first = max(0, min(m.first, at, len(rows)-1))
	if at >= m.first+room {
		m.first = at - room + 1
	}
	m.first = max(0, min(m.first, len(rows)-room))
	return rows[m.first:min(len(rows), m.first+room)]
}

// index is that of the selected row; -1 if there is none.
func (m *model) index(rows []host.RunInfo) int {
	i := slices.IndexFunc(rows, func(r host.RunInfo) bool { return r.ID == m.selected })
	if i < 0 && len(rows) > 0 {
		m.selected = rows[0].ID
		return 0
	}
	return i
}

// target is the run that keys are about.
func (m *model) target() (host.RunInfo, bool) {
	if m.open != "" && m.found != nil {
		return m.found.run, true
	}
	rows := m.rows()
	if i := m.index(rows); i >= 0 {
		return rows[i], true
	}
	return host.RunInfo{}, false
}

// question is the one on screen.
func (m *model) question() *host.Question {
	if m.open == "" || m.found == nil || len(m.found.questions) == 0 {
		return nil
	}
	return &m.found.questions[0]
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	pressed := k.String()
	switch {
	case pressed == "ctrl+c":
		return tea.Quit
	case pressed == "ctrl+z":
		return tea.Suspend
	case m.typing:
		m.type_(k)
		return nil
	case m.sure != nil:
		sure := m.sure
		m.sure, m.notice = nil, ""
		if pressed == "y" {
			return sure.cmd
		}
		return nil
	}
	m.notice, m.bad = "", false
	if m.move(pressed) {
		return nil
	}
	switch pressed {
	case "q", "esc", "left":
		if m.open == "" {
			if pressed == "q" {
				return tea.Quit
			}
			m.filter = ""
			return nil
		}
		if m.diff != "" {
			m.diff, m.from = "", 0
			return nil
		}
		m.open, m.found, m.shown, m.from = "", nil, "", 0
	case "enter", "right":
		if run, ok := m.target(); ok && m.open == "" {
			m.open, m.found, m.from = run.ID, &opened{run: run}, 0
			id := run.ID
			return func() tea.Msg { return m.records.output(id) }
		}
	case "d":
		switch {
		case m.diff != "":
			m.diff, m.from = "", 0
		case m.open != "":
			return m.records.diff(m.open, m.color)
		default:
			m.notice = "Enter opens a run, d shows there what it changed"
		}
	case "A":
		m.all = !m.all
	case "/":
		m.typing = m.open == ""
	case "y", "a", "n":
		return m.answer(pressed)
	case "i", "p", "s", "K":
		return m.control(pressed)
	}
	return nil
}

// type_ edits the filter.
func (m *model) type_(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		m.filter += k.Text
	}
}

// move moves the selection, or what is shown of the output.
func (m *model) move(pressed string) bool {
	page := max(1, m.height-frame-1)
	by, ok := map[string]int{"up": -1, "down": 1, "pgup": -page, "pgdown": page, "home": -1 << 30, "end": 1 << 30}[pressed]
	if !ok {
		return false
	}
	if m.open != "" {
		m.from = max(0, m.from-by)
		return true
	}
	rows := m.rows()
	if i := m.index(rows); i >= 0 {
		m.selected = rows[min(max(0, i+by), len(rows)-1)].ID
	}
	return true
}

// seenFor is how long a question must have been on screen before a key answers it.
const seenFor = 300 * time.Millisecond

// answer answers the question on screen.
func (m *model) answer(pressed string) tea.Cmd {
	q := m.question()
	if q == nil {
		if run, ok := m.target(); ok && run.State == code.StateWaiting {
			m.notice = "Enter shows what it asks"
		}
		return nil
	}
	if q.ID != m.shown || m.now().Sub(m.since) < seenFor {
		m.notice = "this key came before the question: press it again"
		return nil
	}
	id, rules := q.ID, q.Rules
	switch {
	case !q.Approval:
		m.notice = "answer it by: amux answer " + m.open
	case pressed == "y":
		return m.records.do("approved", m.open, func(ctx context.Context, run app.Recorded) error { return run.Approve(ctx, id, nil) })
	case pressed == "n":
		return m.records.do("denied", m.open, func(ctx context.Context, run app.Recorded) error { return run.Deny(ctx, id, "") })
	case len(rules) == 0:
		m.notice = "no rule can say that: y or n"
	default:
		m.sure = &command{"allow " + strings.Join(rules, ", ") + " for the rest of this run?",
			m.records.do("allowed", m.open, func(ctx context.Context, run app.Recorded) error { return run.Allow(ctx, id, rules) })}
	}
	return nil
}

// control asks before it does something to a run.
func (m *model) control(pressed string) tea.Cmd {
	run, ok := m.target()
	if !ok || app.HasEnded(run) {
		return nil
	}
	what, did, command_ := "", "", (func(ctx context.Context, run app.Recorded) error)(nil)
	switch pressed {
	case "i":
		what, did, command_ = "interrupt the turn of ", "interrupted", func(ctx context.Context, r app.Recorded) error { return r.Interrupt(ctx) }
	case "s":
		what, did, command_ = "stop ", "asked to stop", func(ctx context.Context, r app.Recorded) error { return r.Stop(ctx) }
	case "K":
		what, did, command_ = "kill ", "killed", func(ctx context.Context, r app.Recorded) error { return r.Kill(ctx) }
	case "p":
		if run.State == code.StatePaused {
			what, did, command_ = "continue ", "continues", func(ctx context.Context, r app.Recorded) error { return r.Resume(ctx) }
		} else {
			what, did, command_ = "pause ", "paused", func(ctx context.Context, r app.Recorded) error { return r.Pause(ctx) }
		}
	}
	m.sure = &command{what + name(run) + "?", m.records.do(name(run)+" "+did, run.ID, command_)}
	return nil
}
