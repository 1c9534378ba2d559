package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

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

// readCommands does what stdin says, line by line, until it ends; that is the end
// of prompts. A line that is wrong, or cannot be done, is said on stderr and
// changes nothing.
//
// people says that approvals are for the one who writes to stdin.
func readCommands(s *session, run Run, people bool) {
	ctx := context.Background()
	r := bufio.NewReaderSize(s.app.IO.In, 64<<10)
	ended, answered := false, map[string]bool{}
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if text := strings.TrimSpace(string(line)); text != "" {
			var c commandLine
			problem := decodeCommand([]byte(text), &c)
			if problem == nil {
				problem = obey(ctx, run, c)
				answered[c.InteractionID] = true
				ended = ended || c.Type == "end" || c.Type == "stop"
			}
			if problem != nil && !errors.Is(problem, pluginapi.CodeRunNotActive) {
				s.errf("error: stdin line %d: %v", n, problem)
			}
		}
		if err == nil {
			continue
		}
		if err != io.EOF {
			s.errf("error: read stdin: %v", err)
		}
		if !ended {
			_ = run.End(ctx) // a run that has ended needs no end
		}
		denyAll(ctx, run, people, answered)
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
// who could.
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
