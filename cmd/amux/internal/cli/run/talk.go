package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/line"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// talk is a person's side of a run: the input line, the sign of life, and the commands of
// amux's own.
type talk struct {
	l       *live
	line    *line.Line // nil: the terminal edits lines itself
	history *line.History
	changes func(context.Context) (*host.Changes, error)

	resized <-chan os.Signal
	width   int
	ticks   *time.Ticker // while the agent works
	close   func()
	begun   time.Time // when the turn did
	doing   string
	frame   int
	spent   spent
	offered []string // the agent's own slash commands, as far as it has named them
}

// talkOptions say how a person talks to a run.
type talkOptions struct {
	config  string // the folder of the history
	keep    bool   // the history is written
	prompts bool   // the run takes prompts
	echo    bool   // no event shows those that are typed here
	watch   bool   // nothing is typed
	changes func(context.Context) (*host.Changes, error)
}

// sit opens the input line, if there is a person at a terminal. Call close at the end.
func (l *live) sit(o talkOptions) {
	l.talk = talk{l: l, close: func() {}, changes: o.changes, width: l.process.IO.Width}
	t, streams := &l.talk, l.process.IO
	if !l.process.Attended() || streams.Keys == nil || o.watch || l.print.RenderOptions().Debug {
		return // the log of --debug does not go through a line
	}
	options := line.Options{Color: streams.Color, Echo: o.echo}
	if o.prompts {
		options.Prompt = "> "
		options.History = line.NewHistory(o.config, o.keep)
	}
	opened, err := line.Open(streams, options)
	if err != nil {
		l.print.Debugf("no input line: %v", err)
		return
	}
	resized, stop := l.process.Resized()
	t.line, t.history, t.resized = opened, options.History, resized
	t.ticks = time.NewTicker(time.Hour)
	t.ticks.Stop()
	t.close = func() {
		t.ticks.Stop()
		stop()
		opened.Close()
	}
}

// render has a renderer use the line.
func (t *talk) render(o *render.Options, plain bool) {
	if t.line != nil {
		o.Line, o.Markdown = t.line, o.Live && o.Color && !plain
	}
}

// tick is when the sign of life moves.
func (t *talk) tick() <-chan time.Time {
	if t.ticks == nil {
		return nil
	}
	return t.ticks.C
}

// resize takes another size of the terminal.
func (t *talk) resize() {
	t.width = max(20, t.line.Resized())
	t.l.renderer.SetWidth(t.width)
}

// aside does something while the terminal is as it was before.
func (t *talk) aside(do func()) {
	if t.line != nil {
		t.line.Suspend()
		defer func() { t.l.try("take the terminal", t.line.Resume()) }()
	}
	do()
}

// terminal is where the bell rings.
func (l *live) terminal() io.Writer {
	if l.talk.line != nil {
		return l.talk.line.Terminal()
	}
	return l.process.IO.Err
}

const frameTime = 125 * time.Millisecond

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧")

// event follows what the agent does.
func (t *talk) event(e host.Event) {
	t.spent.add(e)
	t.offer(e)
	if t.line == nil {
		return
	}
	switch e.Type {
	case code.EventTextDelta:
		t.doing = "writes"
	case code.EventTurnStart, code.EventUserMessage, code.EventToolResult, code.EventToolError, code.EventStepStart, code.EventApprovalGranted, code.EventInputAnswered, code.EventResumed:
		t.doing = ""
	case code.EventPaused:
		t.doing = "paused"
	case code.EventRateLimited:
		t.doing = "rate limited"
	case code.EventThinkingStart, code.EventThinkingDelta, code.EventToolCallReady, code.EventRetry:
		t.doing = render.Activity([]host.Event{e})
	}
	t.work(t.l.busy && e.Type != code.EventRunEnd)
}

// maxOffered bounds the agent's slash commands that are kept.
const maxOffered = 1024

// offer notes a slash command that the agent has named.
func (t *talk) offer(e host.Event) {
	var skill pluginapi.SkillLoaded
	if e.Type != code.EventSkillLoaded || len(t.offered) >= maxOffered || e.Decode(&skill) != nil {
		return
	}
	// "memory show" is the command /memory with an argument.
	if name, _, _ := strings.Cut(strings.TrimPrefix(render.String(skill.SkillName), "/"), " "); name != "" && !slices.Contains(t.offered, name) {
		t.offered = append(t.offered, name)
	}
}

// work shows the sign of life, or removes it.
func (t *talk) work(busy bool) {
	switch {
	case t.line == nil:
	case !busy:
		t.begun, t.doing = time.Time{}, ""
		t.ticks.Stop()
		t.line.Status("")
	case t.begun.IsZero():
		t.begun = time.Now()
		t.ticks.Reset(frameTime)
	}
}

// alive moves the sign of life.
func (t *talk) alive() {
	if t.begun.IsZero() {
		return
	}
	doing := t.doing
	if doing == "" {
		doing = "waits for " + t.l.spec.Agent
	}
	t.frame++
	t.line.Status(fmt.Sprintf("%c %s  %s", frames[t.frame%len(frames)], time.Since(t.begun).Truncate(time.Second), doing))
}

// ownCommands are those of amux. The rest goes to the agent, which may have some too.
var ownCommands = [][2]string{
	{"/help", "show these commands"},
	{"/diff", "show what the run has changed so far"},
	{"/cost", "show tokens and money so far"},
	{"/model NAME", "use another model"},
	{"/approve MODE", "change who answers: ask, auto, deny or rules"},
	{"/stop", "stop the run"},
}

// remember adds what was typed to the history.
func (t *talk) remember(text string) {
	if t.history == nil {
		return
	}
	if err := t.history.Add(text); err != nil {
		t.l.print.Debugf("the history is not written: %v", err)
	}
}

// prompt takes what was typed. It returns the prompt for the agent; empty if it was a
// command.
func (t *talk) prompt(ctx context.Context, text string) string {
	if !t.l.process.Attended() || !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") {
		return text
	}
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch note := t.l.renderer.Note; word {
	case "/help":
		for _, c := range ownCommands {
			note(fmt.Sprintf("%-14s %s", c[0], c[1]))
		}
		t.helpOfAgent()
		if t.line != nil {
			note("Alt-Enter or Ctrl-J: a new line. Up: earlier prompts. Ctrl-R: search them.")
			note("Ctrl-C: interrupt the turn; twice: stop the run. Ctrl-D: end when it is done.")
		}
	case "/diff":
		t.l.try("diff", t.diff(ctx))
	case "/cost":
		note(render.Used(t.spent.turns, t.spent.tokens, t.spent.cost))
	case "/model":
		if rest == "" {
			note("usage: /model NAME; its models: amux agents models " + t.l.spec.Agent)
		} else if err := t.l.run.SetModel(ctx, rest); err != nil {
			t.l.try("model", err)
		} else {
			note("asked for model " + rest)
		}
	case "/approve":
		t.l.try("approve", t.l.run.SetApprove(ctx, host.ApproveMode(rest)))
	case "/stop":
		t.l.caught = os.Interrupt // the exit code is that of Ctrl-C
		t.l.busy = true           // no further prompt is asked for
		t.l.try("stop", t.l.run.Stop(ctx))
	default:
		if strings.HasPrefix(text, "//") {
			return text[1:]
		}
		return text
	}
	return ""
}

// helpOfAgent shows what the agent offers besides amux's own commands.
func (t *talk) helpOfAgent() {
	note, agent := t.l.renderer.Note, t.l.spec.Agent
	if len(t.offered) > 0 {
		words := make([]string, len(t.offered))
		for i, name := range t.offered {
			words[i] = "/" + name
			if slices.ContainsFunc(ownCommands, func(c [2]string) bool { return strings.Fields(c[0])[0] == words[i] }) {
				words[i] = "/" + words[i]
			}
		}
		note("Commands of " + agent + ":")
		var list strings.Builder
		render.Wrap(&list, strings.Join(words, " "), t.width-2)
		for line := range strings.Lines(list.String()) {
			note("  " + strings.TrimSuffix(line, "\n"))
		}
	}
	note("Any other line goes to " + agent + ", also commands of its own; //help is /help for it.")
}

// diff shows what the run has changed so far.
func (t *talk) diff(ctx context.Context) error {
	changes, err := t.changes(ctx)
	if err != nil {
		return err
	}
	text, err := app.Patch(ctx, changes, t.l.run.ID(), t.l.process.IO.Color)
	switch {
	case err != nil:
		return err
	case text == "":
		t.l.renderer.Note("nothing has changed so far")
	default:
		t.l.asker.dialog.Page(text)
	}
	return nil
}

// spent is what the run has used so far.
type spent struct {
	turns  int
	tokens pluginapi.Tokens
	cost   *pluginapi.Money
}

func (s *spent) add(e host.Event) {
	switch e.Type {
	case code.EventTurnEnd:
		s.turns++
	case code.EventCost:
		var c pluginapi.Cost
		if e.Decode(&c) == nil {
			if s.cost == nil {
				s.cost = &pluginapi.Money{}
			}
			s.cost.USD += c.Cost.USD
		}
	case code.EventTokenUsage:
		var u pluginapi.TokenUsage
		if e.Decode(&u) != nil {
			return
		}
		for _, sum := range []struct {
			to   **int64
			more *int64
		}{
			{&s.tokens.Input, u.InputTokens}, {&s.tokens.Output, u.OutputTokens},
			{&s.tokens.CacheRead, u.CacheReadTokens}, {&s.tokens.CacheWrite, u.CacheWriteTokens},
		} {
			if sum.more == nil {
				continue
			}
			if *sum.to == nil {
				*sum.to = new(int64)
			}
			**sum.to += *sum.more
		}
	}
}
