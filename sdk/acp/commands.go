package acp

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// maxCommands bounds the slash commands of a session that give events.
const maxCommands = 256

// commands are the slash commands that the agent offers. Each gives an event once; an
// agent may name them before the session has begun, and lists all of them each time.
type commands struct {
	known map[string]bool
	early []string // named before the session began
	begun bool
}

// update is available_commands_update.
func (c *commands) update(update jsonl.Value, out *sdk.Out) bool {
	if !update.IsArray("availableCommands") {
		return false
	}
	for _, command := range update.Items("availableCommands") {
		name := strings.TrimPrefix(command.Text("name"), "/")
		if name == "" || c.known[name] || len(c.known) >= maxCommands {
			continue
		}
		if c.known == nil {
			c.known = map[string]bool{}
		}
		c.known[name] = true
		c.early = append(c.early, name)
	}
	c.emit(out)
	return true
}

// begin emits what has waited for the session.
func (c *commands) begin(out *sdk.Out) {
	c.begun = true
	c.emit(out)
}

func (c *commands) emit(out *sdk.Out) {
	if !c.begun {
		return
	}
	for _, name := range c.early {
		out.Event(pluginapi.SkillLoaded{SkillName: name, Source: "command"})
	}
	c.early = nil
}
