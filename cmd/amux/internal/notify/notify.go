// Package notify tells people who look elsewhere that somebody needs them: a question is
// open, or a long run has ended. The user's settings say how: the terminal's bell, a
// notification of the terminal's own, a command.
//
// The command runs beside the run, bounded in time, and never delays it. Whoever hosts a
// run runs the command for it; each terminal rings for what it shows.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Run is the run that is watched, in the process that hosts it.
type Run interface {
	Info() host.RunInfo
	Questions() []host.Question
	CopyEvents(ctx context.Context, w io.Writer, from uint64) error
}

// about is what is told of a run beside what happened.
type about struct {
	RunID   string   `json:"run_id"`
	Name    string   `json:"name,omitempty"`
	Agent   string   `json:"agent"`
	Cwd     string   `json:"cwd"`
	Project string   `json:"project,omitempty"`
	Tags    []string `json:"tags,omitempty"`
}

// message is what the command gets on stdin.
type message struct {
	Event string `json:"event"` // question, end
	about
	Text     string          `json:"text"` // in one line
	Question *host.Question  `json:"question,omitempty"`
	End      json.RawMessage `json:"end,omitempty"` // the run_end event

	// short is Text without anything of the agent's: a command may have a secret in it,
	// and an environment is passed on to whatever the command starts.
	short string
}

// Watcher notifies about one run.
type Watcher struct {
	Settings settings.Notify
	Env      []string // of the command
	// Terminal, if not nil, is one that nobody is known to look at: it is rung too.
	Terminal io.Writer
	Warn     func(format string, args ...any)

	run    Run
	about  about
	told   map[string]bool // questions
	failed sync.Once
	line   []byte // the beginning of a line
	long   bool   // more of it is skipped
}

// Needed reports whether there is anything to watch for.
func (w *Watcher) Needed() bool {
	s := w.Settings
	return s.Line != "" || s.Argv != nil || w.Terminal != nil && (s.Bell || s.Terminal != "")
}

// Watch notifies about what the run does from event number from on, and returns when the
// run has ended and its notification, if any, is done.
func (w *Watcher) Watch(ctx context.Context, run Run, from uint64) {
	w.run, w.told = run, map[string]bool{}
	info := run.Info()
	w.about = about{info.ID, info.Name, info.Agent, info.Cwd, info.Project, info.Tags}
	_ = run.CopyEvents(ctx, w, from) // without events there is nothing to tell
}

// mostLine is longer than a run_end; questions are read from the record.
const mostLine = 64 << 10

// Write takes events, one a line. It looks at the beginnings of most.
func (w *Watcher) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		piece, rest, whole := bytes.Cut(p, []byte("\n"))
		if len(w.line)+len(piece) > mostLine {
			piece = piece[:mostLine-len(w.line)]
			w.long = true
		}
		if whole && len(w.line) == 0 {
			w.event(piece, w.long)
			w.long = false
		} else if w.line = append(w.line, piece...); whole {
			w.event(w.line, w.long)
			w.line, w.long = w.line[:0], false
		}
		p = rest
	}
	return n, nil
}

// event takes an event, or the beginning of a long one.
func (w *Watcher) event(line []byte, long bool) {
	switch {
	case isType(line, code.EventApprovalRequest), isType(line, code.EventInputRequired):
		for _, q := range w.run.Questions() {
			if !w.told[q.ID] {
				w.told[q.ID] = true
				short := "has a question"
				if q.Approval {
					short = "asks for approval"
				}
				w.tell(message{Event: "question", Text: "asks: " + render.QuestionLine(q), Question: &q, short: short})
			}
		}
	case isType(line, code.EventRunEnd) && !long:
		var end pluginapi.RunEnd
		if json.Unmarshal(line, &end) == nil && time.Duration(end.DurationMS)*time.Millisecond >= w.Settings.Least() {
			said := "has ended: " + end.State
			w.tell(message{Event: "end", Text: said, End: bytes.Clone(line), short: said})
		}
	}
}

// isType reports whether line is an event of that type, which every event begins with.
func isType(line []byte, t string) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"`+t+`"`))
}

func (w *Watcher) tell(m message) {
	m.about = w.about
	name := render.ShortID(w.about.RunID)
	if w.about.Name != "" {
		name = printable.Line(w.about.Name)
	}
	name += " (" + w.about.Agent + ") "
	m.Text = name + m.Text
	if w.Terminal != nil {
		Ring(w.Terminal, w.Settings, m.Text)
	}
	if w.Settings.Line == "" && w.Settings.Argv == nil {
		return
	}
	env := w.Env[:len(w.Env):len(w.Env)]
	for _, v := range [][2]string{
		{"EVENT", m.Event}, {"RUN", m.RunID}, {"NAME", m.Name}, {"AGENT", m.Agent}, {"TEXT", render.Excerpt(name+m.short, mostText)},
	} {
		env = append(env, "AMUX_"+v[0]+"="+v[1])
	}
	hook := host.Hook{Line: w.Settings.Line, Argv: w.Settings.Argv, Env: env, Dir: filepath.FromSlash(w.about.Cwd)}
	if err := hook.Run(context.Background(), m); err != nil {
		w.failed.Do(func() { w.Warn("the command of [notify] failed: %v", err) })
	}
}

// mostText is how many columns of a text a notification has.
const mostText = 200

// Ring rings a terminal's bell, and has it show a notification.
func Ring(terminal io.Writer, s settings.Notify, text string) {
	text = render.Excerpt(text, mostText)
	switch s.Terminal {
	case "osc9":
		fmt.Fprintf(terminal, "\x1b]9;amux: %s\x07", text)
	case "osc777":
		fmt.Fprintf(terminal, "\x1b]777;notify;amux;%s\x07", text)
	}
	Bell(terminal, s)
}

// Bell rings only the bell: somebody looks at the terminal.
func Bell(terminal io.Writer, s settings.Notify) {
	if s.Bell {
		_, _ = io.WriteString(terminal, "\a") // there is nowhere to report an error
	}
}
