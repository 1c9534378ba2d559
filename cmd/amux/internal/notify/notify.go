// Package notify tells people who look elsewhere that somebody needs them: a question is
// open, or a long run has ended. The user's settings say how: the terminal's bell, a
// notification of the terminal's own, a command. It also runs the hooks of the settings.
//
// The commands run beside the run, bounded in time, and never delay it; only the hook
// before a run does. Whoever hosts a run runs the commands for it; each terminal rings for
// what it shows.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
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
	Profile string   `json:"profile,omitempty"`
}

func aboutRun(info host.RunInfo) about {
	return about{info.ID, info.Name, info.Agent, info.Cwd, info.Project, info.Tags, info.Spec.Profile}
}

// message is what a command gets on stdin.
type message struct {
	Event string `json:"event"` // start, question, end
	about
	Text     string          `json:"text"` // in one line
	Prompt   string          `json:"prompt,omitempty"`
	Question *host.Question  `json:"question,omitempty"`
	End      json.RawMessage `json:"end,omitempty"` // the run_end event

	// short is Text without anything of the agent's: a command may have a secret in it,
	// and an environment is passed on to whatever the command starts.
	short string
}

// Watcher notifies about one run.
type Watcher struct {
	Settings settings.Notify
	Hooks    settings.Hooks
	Env      []string // of the commands
	// Terminal, if not nil, is one that nobody is known to look at: it is rung too.
	Terminal io.Writer
	Warn     func(format string, args ...any)

	run    Run
	about  about
	told   map[string]bool // questions
	failed map[string]bool // commands, by setting
	line   []byte          // the beginning of a line
	long   bool            // more of it is skipped
	ctx    context.Context
}

// Needed reports whether there is anything to watch for.
func (w *Watcher) Needed() bool {
	s := w.Settings
	return s.Command.IsSet() || w.Hooks.AfterRun.IsSet() || w.Hooks.OnQuestion.IsSet() || w.Terminal != nil && (s.Bell || s.Terminal != "")
}

// Watch notifies about what the run does from event number from on, and returns when the
// run has ended and its commands, if any, are done. The end of ctx kills these.
func (w *Watcher) Watch(ctx context.Context, run Run, from uint64) {
	w.ctx = ctx
	w.run, w.told, w.failed = run, map[string]bool{}, map[string]bool{}
	w.about = aboutRun(run.Info())
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
				m := message{Event: "question", Text: "asks: " + render.QuestionLine(q), Question: &q, short: short}
				w.tell(m, true, "the hook on_question", w.Hooks.OnQuestion)
			}
		}
	case isType(line, code.EventRunEnd) && !long:
		var end pluginapi.RunEnd
		if json.Unmarshal(line, &end) == nil {
			said := "has ended: " + end.State
			long := time.Duration(end.DurationMS)*time.Millisecond >= w.Settings.Least()
			w.tell(message{Event: "end", Text: said, End: bytes.Clone(line), short: said}, long, "the hook after_run", w.Hooks.AfterRun)
		}
	}
}

// isType reports whether line is an event of that type, which every event begins with.
func isType(line []byte, t string) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"`+t+`"`))
}

// tell runs the command of [notify] and a hook. Of the first only what is notable is told.
func (w *Watcher) tell(m message, notable bool, hook string, command settings.Command) {
	m.complete(w.about)
	if notable {
		if w.Terminal != nil {
			Ring(w.Terminal, w.Settings, m.Text)
		}
		w.warn("the command of [notify]", m.run(w.ctx, w.Settings.Command, w.Env, host.HookTime))
	}
	w.warn(hook, m.run(w.ctx, command, w.Env, w.Hooks.Most()))
}

// warn says once of each command that it fails.
func (w *Watcher) warn(command string, err error) {
	if err != nil && !w.failed[command] {
		w.failed[command] = true
		if w.ctx.Err() != nil {
			err = errors.New("it was interrupted")
		}
		w.Warn("%s failed: %v", command, err)
	}
}

// Before runs the hook before a run, which may refuse it: see host.Workspace.Prepare. It is
// nil if there is none.
func Before(hooks settings.Hooks, env []string) func(context.Context, host.RunInfo) error {
	if !hooks.BeforeRun.IsSet() {
		return nil
	}
	return func(ctx context.Context, info host.RunInfo) error {
		m := message{Event: "start", Text: "starts", Prompt: info.Prompt, short: "starts"}
		m.complete(aboutRun(info))
		err := m.run(ctx, hooks.BeforeRun, env, hooks.Most())
		if err == nil || ctx.Err() != nil {
			return err
		}
		return pluginapi.Errorf(pluginapi.CodeConfig, "the hook before_run refused the run: %w", err).
			WithHint("see: amux config list --origin")
	}
}

// complete adds the run to what is told.
func (m *message) complete(run about) {
	m.about = run
	name := render.ShortID(run.RunID)
	if run.Name != "" {
		name = printable.Line(run.Name)
	}
	name += " (" + run.Agent + ") "
	m.Text, m.short = name+m.Text, name+m.short
}

// run runs a command, if there is one.
func (m message) run(ctx context.Context, command settings.Command, env []string, most time.Duration) error {
	if !command.IsSet() {
		return nil
	}
	env = env[:len(env):len(env)]
	for _, v := range [][2]string{
		{"EVENT", m.Event}, {"RUN", m.RunID}, {"NAME", m.Name}, {"AGENT", m.Agent}, {"TEXT", render.Excerpt(m.short, mostText)},
	} {
		env = append(env, "AMUX_"+v[0]+"="+v[1])
	}
	return host.Hook{Line: command.Line, Argv: command.Argv, Env: env, Dir: filepath.FromSlash(m.Cwd), Time: most}.Run(ctx, m)
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
