package main

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// exec is the command of the driver that runs one turn and asks nobody. Values
// follow their flag in the same word; the prompt goes to stdin, which must end, or
// the CLI would wait for more.
func (p *planner) exec() error {
	thread := &p.state.Thread
	if p.opts.Conversation {
		return sdk.Cannot(agentID, "a conversation with the driver exec", "leave out --driver: app-server takes any number of prompts")
	}
	if len(p.opts.AllowRules)+len(p.opts.DenyRules) > 0 {
		return sdk.Cannot(agentID, "rules with the driver exec", "leave out --driver: with app-server amux judges each request")
	}
	p.plan.Args = []string{"exec", "--json", "--skip-git-repo-check"}
	switch p.opts.Approve {
	case pb.Approve_APPROVE_UNKNOWN, pb.Approve_APPROVE_DENY:
		p.flag("--sandbox", "read-only")
	case pb.Approve_APPROVE_AUTO:
		p.plan.Args = append(p.plan.Args, "--dangerously-bypass-approvals-and-sandbox")
	default:
		return sdk.Cannot(agentID, "asking with the driver exec", "use --approve auto or deny, or leave out --driver")
	}
	if p.opts.MaxTurns > 0 {
		return sdk.Cannot(agentID, "a limit of turns with the driver exec", "leave out --driver")
	}
	if p.opts.ContinueLast {
		return sdk.Cannot(agentID, "going on with the last session with the driver exec", "name it by --resume, or leave out --driver")
	}
	if thread.Model != "" {
		p.flag("--model", thread.Model)
	}
	if e := p.opts.Effort; e == "max" {
		return sdk.Cannot(agentID, "effort \"max\" with the driver exec", "name one of xhigh, max by its model's words, or leave out --driver")
	} else if e != "" {
		p.setting("model_reasoning_effort", e)
	}
	for _, text := range []string{thread.DeveloperInstructions, thread.BaseInstructions} {
		if len(text) > maxArgument {
			return sdk.Cannot(agentID, "a system prompt of more than 96 KiB with the driver exec", "leave out --driver")
		}
	}
	if thread.DeveloperInstructions != "" {
		p.setting("developer_instructions", thread.DeveloperInstructions)
	}
	if thread.BaseInstructions != "" {
		p.setting("model_instructions_file", sdk.AddFile(p.req, p.plan, "instructions.txt", []byte(thread.BaseInstructions)))
	}
	for name, value := range sortedAny(thread.Config) {
		p.setting(name, value)
	}
	for _, dir := range p.opts.AddDirs {
		p.flag("--add-dir", dir)
	}
	if len(p.state.Schema) > 0 {
		p.flag("--output-schema", sdk.AddFile(p.req, p.plan, "schema.json", p.state.Schema))
	}
	if thread.Ephemeral {
		p.plan.Args = append(p.plan.Args, "--ephemeral")
	}
	for _, piece := range p.state.Input {
		var image imageInput
		if json.Unmarshal(piece, &image); image.URL != "" {
			return sdk.Cannot(agentID, "an image with the driver exec", "leave out --driver")
		}
	}
	if p.opts.Resume != "" {
		verb := "resume"
		if p.opts.Fork {
			verb = "fork"
		}
		p.plan.Args = append(p.plan.Args, verb, p.opts.Resume)
	}
	p.plan.Args = append(p.plan.Args, "-")
	p.plan.Stdin = pb.Stdin_STDIN_PROMPT
	var prompt strings.Builder
	for _, piece := range p.state.Input {
		var text textInput
		json.Unmarshal(piece, &text)
		prompt.WriteString(text.Text + "\n")
	}
	prompt.WriteString(p.opts.Prompt)
	p.plan.InitialStdin = []byte(prompt.String())
	p.state.Input = nil
	return nil
}

func (p *planner) flag(name, value string) { p.plan.Args = append(p.plan.Args, name+"="+value) }

// setting is a key of the configuration for this run; TOML takes JSON's strings,
// numbers and lists, and tables are written key by key.
func (p *planner) setting(name string, value any) {
	if table, ok := value.(map[string]any); ok {
		for key, inner := range sortedAny(table) {
			p.setting(name+"."+key, inner)
		}
		return
	}
	if headers, ok := value.(map[string]string); ok {
		for _, key := range sortedKeys(headers) {
			p.setting(name+"."+key, headers[key])
		}
		return
	}
	data, _ := json.Marshal(value)
	p.flag("--config", name+"="+string(data))
}

func sortedAny(m map[string]any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
