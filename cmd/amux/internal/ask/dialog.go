// Package ask asks the person at a terminal what agents ask: one question at a time,
// always with the same keys. It gives the answer to the run that has asked, in whatever
// process that is hosted. Nothing that was typed before a question was on the screen
// answers it.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Run is the run that has asked.
type Run interface {
	Approve(ctx context.Context, id string, updatedInput json.RawMessage) error
	Allow(ctx context.Context, id string, rules []string) error
	Deny(ctx context.Context, id, reason string) error
	Answer(ctx context.Context, id, text string) error
}

// Dialog asks. It is for one goroutine.
type Dialog struct {
	Renderer *render.Renderer
	Keyboard *Keyboard
	// Failed is told that an answer did not arrive, for another reason than that somebody
	// else was first.
	Failed func(what string, err error)
	// Borrow gives the terminal to a program of the user's, such as a pager, until do returns.
	Borrow  func(do func(ctx context.Context))
	Process *app.Process

	run   Run // nil: no question is open
	open  host.Question
	from  string
	input pluginapi.InputRequired // of a question that is no approval
	given map[string]string       // answers to the first of input.Questions
	at    int                     // how many those are
}

// Ask shows a question. from, if not empty, says which run asks.
func (d *Dialog) Ask(run Run, q host.Question, from string) {
	d.run, d.open, d.from, d.input, d.given, d.at = run, q, from, pluginapi.InputRequired{}, map[string]string{}, 0
	if q.Approval {
		d.Renderer.AskApproval(q, from)
		d.Keyboard.Shown()
		return
	}
	_ = json.Unmarshal(q.Event, &d.input) // without fields, it is shown by its name
	d.put()
}

// put writes the part of a question that is answered next.
func (d *Dialog) put() {
	defer d.Keyboard.Shown()
	from := ""
	if d.from != "" {
		from = " · " + d.from
	}
	if len(d.input.Questions) == 0 {
		d.Renderer.AskQuestion(d.input.Question+from, d.input.Context, nil)
		return
	}
	part := d.input.Questions[d.at]
	text := part.Question
	if part.Multiple {
		text += " (separate several with commas)"
	}
	d.Renderer.AskQuestion(text+from, part.Header, part.Options)
}

// Open is the id of the question on the screen; empty if there is none.
func (d *Dialog) Open() string {
	if d.run == nil {
		return ""
	}
	return d.open.ID
}

// Withdraw closes the question: it needs no answer any more.
func (d *Dialog) Withdraw() {
	d.run = nil
	d.Keyboard.Answered()
}

// Refuse closes the question because nobody can answer.
func (d *Dialog) Refuse(ctx context.Context) {
	d.sent("deny", d.run.Deny(ctx, d.open.ID, NobodyThere))
	d.run = nil
}

// NobodyThere is the reason of a denial that no person has given.
const NobodyThere = "nobody can answer"

// Line takes what was typed, and reports whether the question was answered. One must be
// open.
func (d *Dialog) Line(ctx context.Context, typed Line) (answered bool) {
	if d.Keyboard.Early(typed) {
		d.Renderer.Note("amux: ignored a line that was typed before the question")
		return false
	}
	d.Renderer.Answered()
	if d.open.Approval {
		answered = d.approval(ctx, typed.Text)
	} else {
		answered = d.answer(ctx, typed.Text)
	}
	if answered {
		d.run = nil
	}
	return answered
}

func (d *Dialog) approval(ctx context.Context, text string) (answered bool) {
	word, reason, _ := strings.Cut(text, " ")
	again := func() bool {
		d.Renderer.AskAgain(d.open)
		d.Keyboard.Shown()
		return false
	}
	switch strings.ToLower(strings.TrimRight(word, ",:")) {
	case "y", "yes":
		d.sent("approve", d.run.Approve(ctx, d.open.ID, nil))
	case "a", "always":
		if len(d.open.Rules) == 0 {
			d.Renderer.Note("no rule can cover this: y allows it once")
			return again()
		}
		d.sent("approve", d.run.Allow(ctx, d.open.ID, d.open.Rules))
	case "n", "no":
		d.sent("deny", d.run.Deny(ctx, d.open.ID, strings.TrimSpace(reason)))
	case "d", "details":
		d.Page(render.Question(d.open, d.from, d.Renderer.Color()))
		return again()
	case "e", "edit":
		input, err := d.edit()
		if err != nil {
			d.Renderer.Note(err.Error())
			return again()
		}
		d.sent("approve", d.run.Approve(ctx, d.open.ID, input))
	case "?", "h", "help":
		d.help()
		return again()
	default:
		d.Renderer.Note("answer y, n, a, e or d; a reason may follow n; ? explains")
		return again()
	}
	return true
}

func (d *Dialog) help() {
	always := "a         no rule can cover this request"
	if len(d.open.Rules) > 0 {
		always = "a         allow it, and for the rest of the run what this covers: " + strings.Join(d.open.Rules, ", ")
	}
	change := "e         " + unchangeable
	if d.open.Editable {
		change = "e         change it in $EDITOR, and allow what you saved, once"
	}
	for _, line := range []string{"y         allow it once", "n REASON  deny it; the agent gets the reason, if there is one", always, change,
		"d         show all of it in $PAGER"} {
		d.Renderer.Note(line)
	}
}

// Page shows a text in the user's pager.
func (d *Dialog) Page(text string) {
	d.Keyboard.Lend(func() { d.Borrow(func(ctx context.Context) { d.Process.Page(ctx, text) }) })
}

func (d *Dialog) answer(ctx context.Context, text string) (answered bool) {
	if len(d.input.Questions) > 0 {
		part := d.input.Questions[d.at]
		d.given[part.Question] = choice(part, text)
		if d.at++; d.at < len(d.input.Questions) {
			d.put()
			return false
		}
		data, err := json.Marshal(d.given)
		if err != nil {
			d.sent("answer", err)
			return true
		}
		text = string(data)
	}
	d.sent("answer", d.run.Answer(ctx, d.open.ID, text))
	return true
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

// sent reports what became of an answer, if it is not what counts.
func (d *Dialog) sent(what string, err error) {
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case errors.Is(err, pluginapi.CodeAlreadyAnswered):
		d.Renderer.Note("amux: somebody else was first: your answer does not count")
	case errors.Is(err, pluginapi.CodeRunNotActive):
		d.Renderer.Note("amux: the run has ended meanwhile: your answer does not count")
	default:
		d.Failed(what, err)
	}
}
