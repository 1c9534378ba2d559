package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// asker asks the user what the agent asks, one question at a time. While one is
// open the events behind it wait, so that nothing is written into the prompt.
type asker struct {
	l   *live
	can bool // somebody is at the terminal
	all bool // the user has answered "all"
	// elsewhere says that somebody answers from another terminal.
	elsewhere bool

	// prompt takes a line that answers no question; it may be nil.
	prompt func(ctx context.Context, text string)

	over func(ctx context.Context) // is called when stdin has ended; it may be nil

	current *question
	held    []host.Event
	typing  *typing   // what the user types; nil until the first question
	lines   chan line // the same in lines
	ended   bool      // stdin has ended
}

// waits names the command that answers from another terminal.
func (l *live) waits(id, command string) {
	if !l.mode.Quiet {
		l.note(fmt.Sprintf("waits: amux %s %s %s", command, render.ShortID(l.run.ID()), id))
	}
}

// question is one open approval or input request.
type question struct {
	id       string
	approval bool
	input    pluginapi.InputRequired
	answers  map[string]string // of the first len(answers) of input.Questions
	asked    int
}

// event renders an event, or holds it back behind the open question.
func (a *asker) event(ctx context.Context, e host.Event) {
	if a.current != nil {
		switch {
		case e.Type == code.EventRunEnd:
		case answers(e, a.current.id):
			a.l.note("answered elsewhere")
			a.done(ctx)
			a.event(ctx, e)
			return
		default:
			a.held = append(a.held, e)
			return
		}
		a.current = nil // nobody can answer it any more
		held := a.held
		a.held = nil
		for _, h := range held {
			a.l.renderer.Event(h.Type, h.Raw)
		}
	}
	a.l.renderer.Event(e.Type, e.Raw)
	switch e.Type {
	case code.EventApprovalRequest:
		if a.asks(e) {
			a.approval(ctx, e)
		}
	case code.EventInputRequired:
		a.question(ctx, e)
	}
}

// asks reports whether an approval is for people: no rule, and nobody else, has answered.
func (a *asker) asks(e host.Event) bool {
	var request pluginapi.ApprovalRequest
	return e.Decode(&request) == nil && a.l.run.Waits(request.InteractionID)
}

// askAgain asks a question that was shown before.
func (a *asker) askAgain(ctx context.Context, e host.Event) {
	switch {
	case a.current != nil:
		a.held = append(a.held, e)
	case e.Type == code.EventApprovalRequest && a.asks(e):
		a.approval(ctx, e)
	case e.Type == code.EventInputRequired:
		a.question(ctx, e)
	}
}

// answers reports whether e closes the question of that id.
func answers(e host.Event, id string) bool {
	switch e.Type {
	case code.EventApprovalGranted, code.EventApprovalDenied, code.EventInputAnswered:
		var closed struct {
			InteractionID string `json:"interaction_id"`
		}
		return e.Decode(&closed) == nil && closed.InteractionID == id
	}
	return false
}

// done closes the open question and goes on with what was held back.
func (a *asker) done(ctx context.Context) {
	a.current = nil
	for len(a.held) > 0 && a.current == nil {
		next := a.held[0]
		a.held = a.held[1:]
		a.event(ctx, next)
	}
}

func (a *asker) approval(ctx context.Context, e host.Event) {
	var request pluginapi.ApprovalRequest
	if e.Decode(&request) != nil {
		return
	}
	switch {
	case a.all:
		a.sent("approve", a.l.run.Approve(ctx, request.InteractionID, nil))
	case a.elsewhere:
		a.l.waits(request.InteractionID, "approve")
	case !a.can || a.ended:
		a.sent("deny", a.l.run.Deny(ctx, request.InteractionID, "nobody can answer"))
	default:
		a.current = &question{id: request.InteractionID, approval: true}
		a.listen()
		a.l.renderer.AskApproval(e.Raw)
		a.typing.shown()
	}
}

func (a *asker) question(ctx context.Context, e host.Event) {
	q := &question{answers: map[string]string{}}
	if e.Decode(&q.input) != nil {
		return
	}
	q.id = q.input.InteractionID
	if a.elsewhere {
		a.l.waits(q.id, "answer")
		return
	}
	if !a.can || a.ended {
		a.sent("deny", a.l.run.Deny(ctx, q.id, "nobody can answer"))
		return
	}
	a.current = q
	a.listen()
	a.put(q)
}

// put writes the part of a question that is answered next.
func (a *asker) put(q *question) {
	defer a.typing.shown()
	if len(q.input.Questions) == 0 {
		a.l.renderer.AskQuestion(q.input.Question, q.input.Context, nil)
		return
	}
	part := q.input.Questions[q.asked]
	text := part.Question
	if part.Multiple {
		text += " (separate several with commas)"
	}
	a.l.renderer.AskQuestion(text, part.Header, part.Options)
}

// listen begins to read what the user types.
func (a *asker) listen() {
	if a.lines != nil {
		return
	}
	lines := make(chan line)
	t := &typing{io: a.l.process.IO}
	a.lines, a.typing = lines, t
	go func() { // reads a terminal, so it ends with the process
		defer close(lines)
		r := bufio.NewReader(t)
		for {
			text, err := readLine(r, host.MaxPrompt)
			if errors.Is(err, errLongLine) {
				a.l.print.Notef("error: a line is longer than %d MiB, so it is not sent", host.MaxPrompt>>20)
				continue
			}
			if len(text) > 0 || err == nil {
				lines <- t.stamp(strings.TrimSpace(string(text)))
			}
			if err != nil {
				return
			}
		}
	}()
}

// line takes what the user typed; ok is false when stdin has ended.
func (a *asker) line(ctx context.Context, typed line, ok bool) {
	if !ok {
		a.ended = true
		a.lines = nil
		if q := a.current; q != nil {
			a.l.renderer.Note("stdin has ended: denied")
			a.sent("deny", a.l.run.Deny(ctx, q.id, "nobody can answer"))
			a.done(ctx)
		}
		if a.over != nil {
			a.over(ctx)
		}
		return
	}
	q, text := a.current, typed.text
	if q == nil {
		if a.prompt != nil && text != "" {
			a.prompt(ctx, text)
		}
		return // typed ahead: it answers nothing
	}
	if a.typing.early(typed) {
		a.l.note("ignored a line that was typed before the question")
		return
	}
	a.l.renderer.Answered()
	if q.approval {
		a.answerApproval(ctx, q, text)
		return
	}
	answer := text
	if len(q.input.Questions) > 0 {
		part := q.input.Questions[q.asked]
		q.answers[part.Question] = choice(part, text)
		if q.asked++; q.asked < len(q.input.Questions) {
			a.put(q)
			return
		}
		data, err := json.Marshal(q.answers)
		if err != nil {
			a.sent("answer", err)
			return
		}
		answer = string(data)
	}
	a.sent("answer", a.l.run.Answer(ctx, q.id, answer))
	a.done(ctx)
}

func (a *asker) answerApproval(ctx context.Context, q *question, text string) {
	word, reason, _ := strings.Cut(text, " ")
	switch strings.ToLower(strings.TrimRight(word, ",:")) {
	case "y", "yes":
		a.sent("approve", a.l.run.Approve(ctx, q.id, nil))
	case "a", "all":
		a.all = true
		a.sent("approve", a.l.run.Approve(ctx, q.id, nil))
	case "n", "no":
		a.sent("deny", a.l.run.Deny(ctx, q.id, strings.TrimSpace(reason)))
	default:
		a.l.renderer.AskQuestion("answer y, n or a; a reason may follow n", "", nil)
		a.typing.shown()
		return
	}
	a.done(ctx)
}

// choice turns numbers into the options that they stand for.
func choice(q pluginapi.Question, text string) string {
	pick := func(word string) string {
		word = strings.TrimSpace(word)
		if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(q.Options) {
			return q.Options[n-1]
		}
		return word
	}
	if !q.Multiple {
		return pick(text)
	}
	words := strings.Split(text, ",")
	for i, word := range words {
		words[i] = pick(word)
	}
	return strings.Join(words, ", ")
}

// sent reports that an answer did not arrive, unless somebody else was first.
func (a *asker) sent(what string, err error) {
	if err == nil || errors.Is(err, pluginapi.CodeAlreadyAnswered) || errors.Is(err, io.EOF) {
		return
	}
	a.l.try(what, err)
}
