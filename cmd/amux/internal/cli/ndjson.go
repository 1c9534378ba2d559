package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// commandLine is a line of --input ndjson.
type commandLine struct {
	Type          string          `json:"type"`
	Text          string          `json:"text"`
	InteractionID string          `json:"interaction_id"` // empty: the only one that waits
	UpdatedInput  json.RawMessage `json:"updated_input"`
	Reason        string          `json:"reason"`
	Model         string          `json:"model"`
}

const commandTypes = "prompt, approve, deny, answer, interrupt, set_model, end, stop"

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
		line, err = readLine(c.r, maxCommand)
		c.n++
		text = strings.TrimSpace(string(line))
	}
	return text, err
}

// maxCommand is longer than any prompt is as JSON.
const maxCommand = 2*host.MaxPrompt + 1<<20

// errLongLine says that a line was passed over.
var errLongLine = errors.New("the line is too long")

// readLine reads a line of at most limit bytes. It passes over one that is longer, and
// says errLongLine.
func readLine(r *bufio.Reader, limit int) (line []byte, err error) {
	long := false
	for {
		piece, err := r.ReadSlice('\n')
		if long = long || len(line)+len(piece) > limit; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case long && err == nil:
			return nil, errLongLine
		}
		return line, err
	}
}

// prompt is the first line, which holds the one prompt of the run.
func (c *commands) prompt() (string, error) {
	text, err := c.next()
	if text == "" {
		if errors.Is(err, errLongLine) {
			return "", usage("stdin line %d is longer than %d MiB", c.n, maxCommand>>20).WithHint("put the long text into a file and name it")
		}
		if err == io.EOF {
			return "", usage("there is no prompt: stdin is empty")
		}
		return "", pluginapi.Errorf(pluginapi.CodeInternal, "read the prompt from stdin: %w", err)
	}
	var first commandLine
	if err := decodeCommand([]byte(text), &first); err != nil {
		return "", err
	}
	if first.Type != "prompt" || first.Text == "" {
		return "", usage("stdin line %d is not the prompt", c.n).WithHint(`begin with {"type":"prompt","text":"…"}, or leave out the - for a conversation`)
	}
	return first.Text, nil
}

// readCommands does what stdin says, line by line, until it ends; that is the end
// of prompts, or with --monitor-stdin of the run. A line that is wrong, or cannot be
// done, is said on stderr and changes nothing.
func (l *live) readCommands() {
	ctx := context.Background()
	s, run, c := l.s, l.run, l.o.commands
	ended, answered := false, map[string]bool{}
	for {
		text, err := c.next()
		if errors.Is(err, errLongLine) {
			s.errf("error: stdin line %d is longer than %d MiB, and is not done", c.n, maxCommand>>20)
			continue
		}
		if text != "" {
			var line commandLine
			problem := decodeCommand([]byte(text), &line)
			if problem == nil {
				problem = obey(ctx, run, line)
				answered[line.InteractionID] = true
				ended = ended || line.Type == "end" || line.Type == "stop"
			}
			if problem != nil && !errors.Is(problem, pluginapi.CodeRunNotActive) {
				s.errf("error: stdin line %d: %v", c.n, problem)
			}
		}
		if err == nil {
			continue
		}
		if err != io.EOF {
			s.errf("error: read stdin: %v", err)
		}
		// A run that has ended needs neither.
		switch {
		case l.o.monitorStdin:
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
		return usage("want a JSON object such as {\"type\":\"prompt\",\"text\":\"…\"}: %v", err)
	}
	if c.Type == "" {
		return usage("type is missing; it is one of %s", commandTypes)
	}
	return nil
}

func obey(ctx context.Context, run controlled, c commandLine) error {
	switch c.Type {
	case "prompt":
		return run.Send(ctx, c.Text)
	case "approve":
		return run.Approve(ctx, c.InteractionID, c.UpdatedInput)
	case "deny":
		return run.Deny(ctx, c.InteractionID, c.Reason)
	case "answer":
		return run.Answer(ctx, c.InteractionID, c.Text)
	case "interrupt":
		return run.Interrupt(ctx)
	case "set_model":
		if c.Model == "" {
			return usage("set_model needs model")
		}
		return run.SetModel(ctx, c.Model)
	case "end":
		return run.End(ctx)
	case "stop":
		return run.Stop(ctx)
	}
	return usage("unknown type %q; it is one of %s", c.Type, commandTypes)
}

// denyAll answers what the agent asks after stdin has ended, when nobody is left
// who could. people says that approvals were for the one who wrote to stdin.
func denyAll(ctx context.Context, run Run, people bool, answered map[string]bool) {
	for event, err := range run.Events(1) {
		if err != nil {
			return
		}
		if event.Type != "input_required" && (event.Type != "approval_request" || !people) {
			continue
		}
		var asked struct {
			InteractionID string `json:"interaction_id"`
		}
		if event.Decode(&asked) == nil && !answered[asked.InteractionID] {
			// One that was answered meanwhile stays as it is: the first answer wins.
			_ = run.Deny(ctx, asked.InteractionID, "nobody can answer: stdin has ended")
		}
	}
}
