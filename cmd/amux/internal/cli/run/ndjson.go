package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/ndjson"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// commandLine is a line of --input ndjson.
type commandLine struct {
	Type          string          `json:"type"`
	Text          string          `json:"text"`
	InteractionID string          `json:"interaction_id"` // empty: the only pending one
	UpdatedInput  json.RawMessage `json:"updated_input"`
	Reason        string          `json:"reason"`
	Model         string          `json:"model"`
	Approve       string          `json:"approve"`
}

const commandTypes = "prompt, approve, deny, answer, interrupt, set_model, set_approve, end, stop"

// commands are the lines of --input ndjson.
type commands struct {
	r *bufio.Reader
	n int // lines read
}

func newCommands(in io.Reader) *commands { return &commands{r: bufio.NewReaderSize(in, 64<<10)} }

// next is the next line that is not empty; the last one may come with the error
// that ends stdin.
func (c *commands) next() (text string, err error) {
	for err == nil && text == "" {
		var line []byte
		line, err = ndjson.ReadLine(c.r, maxCommand)
		c.n++
		text = strings.TrimSpace(string(line))
	}
	return text, err
}

// maxCommand is longer than any prompt is as JSON.
const maxCommand = 2*host.MaxPrompt + 1<<20

// prompt is the first line, which holds the one prompt of the run.
func (c *commands) prompt() (string, error) {
	text, err := c.next()
	if text == "" {
		if errors.Is(err, ndjson.ErrLongLine) {
			return "", app.Usagef("stdin line %d is longer than %d MiB", c.n, maxCommand>>20).WithHint("put the long text into a file and name it")
		}
		if err == io.EOF {
			return "", app.Usagef("no prompt: stdin is empty")
		}
		return "", pluginapi.Errorf(pluginapi.CodeInternal, "read the prompt from stdin: %w", err)
	}
	var first commandLine
	if err := decodeCommand([]byte(text), &first); err != nil {
		return "", err
	}
	if first.Type != code.InputPrompt || first.Text == "" {
		return "", app.Usagef("stdin line %d is not the prompt", c.n).WithHint(`begin with {"type":"prompt","text":"…"}, or leave out - for a conversation`)
	}
	return first.Text, nil
}

// readCommands carries out the lines of stdin until it ends; that ends the prompts, or
// with --monitor-stdin the run. An invalid line, or one that fails, is reported on
// stderr and changes nothing.
func (l *live) readCommands() {
	ctx := context.Background()
	run, c := l.run, l.commands
	ended, answered := false, map[string]bool{}
	for {
		text, err := c.next()
		if errors.Is(err, ndjson.ErrLongLine) {
			l.print.LineError(c.n, app.Usagef("it is longer than %d MiB, so it is ignored", maxCommand>>20))
			continue
		}
		if text != "" {
			var line commandLine
			problem := decodeCommand([]byte(text), &line)
			if problem == nil {
				problem = obey(ctx, run, line)
				answered[line.InteractionID] = true
				ended = ended || line.Type == code.InputEnd || line.Type == code.InputStop
			}
			if problem != nil && !errors.Is(problem, pluginapi.CodeRunNotActive) {
				l.print.LineError(c.n, problem)
			}
		}
		if err == nil {
			continue
		}
		if err != io.EOF {
			l.print.Notef("error: read stdin: %v", err)
		}
		// Both fail on a run that has ended, which is fine.
		switch {
		case l.mode.MonitorStdin:
			_ = run.Stop(ctx)
		case !ended && l.spec.Conversation:
			_ = run.End(ctx)
		}
		denyAll(ctx, run, l.spec.Approve == host.ApproveAsk, answered)
		return
	}
}

func decodeCommand(line []byte, c *commandLine) error {
	if err := json.Unmarshal(line, c); err != nil {
		return app.Usagef("expected a JSON object such as {\"type\":\"prompt\",\"text\":\"…\"}: %v", err)
	}
	if c.Type == "" {
		return app.Usagef("type is missing; it is one of %s", commandTypes)
	}
	return nil
}

func obey(ctx context.Context, run app.Controlled, c commandLine) error {
	switch c.Type {
	case code.InputPrompt:
		return run.Send(ctx, c.Text)
	case code.InputApprove:
		return run.Approve(ctx, c.InteractionID, c.UpdatedInput)
	case code.InputDeny:
		return run.Deny(ctx, c.InteractionID, c.Reason)
	case code.InputAnswer:
		return run.Answer(ctx, c.InteractionID, c.Text)
	case code.InputInterrupt:
		return run.Interrupt(ctx)
	case code.InputSetModel:
		if c.Model == "" {
			return app.Usagef("set_model needs model")
		}
		return run.SetModel(ctx, c.Model)
	case code.InputSetApprove:
		return run.SetApprove(ctx, host.ApproveMode(c.Approve))
	case code.InputEnd:
		return run.End(ctx)
	case code.InputStop:
		return run.Stop(ctx)
	}
	return app.Usagef("unknown type %q; it is one of %s", c.Type, commandTypes)
}

// denyAll denies what the agent asks after stdin has ended, because nobody is left who
// could answer. people says that stdin answered permission requests.
func denyAll(ctx context.Context, run app.Run, people bool, answered map[string]bool) {
	for event, err := range run.Events(context.Background(), 1) {
		if err != nil {
			return
		}
		if event.Type != code.EventInputRequired && (event.Type != code.EventApprovalRequest || !people) {
			continue
		}
		var asked struct {
			InteractionID string `json:"interaction_id"`
		}
		if event.Decode(&asked) == nil && !answered[asked.InteractionID] {
			// An earlier answer stays: the first answer wins.
			_ = run.Deny(ctx, asked.InteractionID, "nobody can answer: stdin has ended")
		}
	}
}
