package command

import (
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// messageLimit is how much text one message has; what follows is another one.
const messageLimit = 1 << 20

// Converse implements sdk.Converser.
func (Adapter) Converse(*pluginapi.Start) (sdk.Conversation, error) { return &conversation{}, nil }

type conversation struct {
	turns    int
	inTurn   bool
	messages int
	open     bool   // a message is
	text     []byte // of the open message
	ending   bool
}

// Handle implements sdk.Conversation.
func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_PROMPT:
		c.endTurn(out)
		out.TurnStarted()
		out.Event(pluginapi.TurnStart{TurnIndex: c.turns})
		c.inTurn = true
		out.Write(append(append([]byte(nil), in.Data...), '\n'))
		// It never says that it has answered: whoever has another prompt sends it.
		out.Idle()
	case pb.InputKind_INPUT_STDOUT:
		c.say(in.Data, out)
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_END:
		if !c.ending {
			c.ending = true
			out.CloseStdin()
		}
	case pb.InputKind_INPUT_SPAWN_FAILED:
		c.endTurn(out)
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeSpawn), Message: string(in.Data)})
	case pb.InputKind_INPUT_EXIT:
		c.endTurn(out)
		out.Outcome(sdk.ExitOutcome(in.GetExit()))
	}
	return nil
}

// say makes a delta of a line.
func (c *conversation) say(line []byte, out *sdk.Out) {
	if !c.open {
		c.open = true
		c.messages++
		out.Event(pluginapi.MessageStart{MessageID: c.message()})
	}
	delta := string(line) + "\n"
	out.Event(pluginapi.TextDelta{Delta: delta})
	if c.text = append(c.text, delta...); len(c.text) >= messageLimit {
		c.endMessage(out)
	}
}

func (c *conversation) message() string { return "message-" + strconv.Itoa(c.messages) }

func (c *conversation) endMessage(out *sdk.Out) {
	if c.open {
		out.Event(pluginapi.MessageStop{MessageID: c.message(), Text: string(c.text)})
		c.open, c.text = false, nil
	}
}

func (c *conversation) endTurn(out *sdk.Out) {
	c.endMessage(out)
	if c.inTurn {
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turns})
		c.turns++
		c.inTurn = false
	}
}
