package acp

import (
	"encoding/json"

	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonrpc"
	"github.com/amux-dev/amux/sdk/turn"
)

// link is what the parts of a conversation share: what is open in it, and the way to the
// agent.
type link struct {
	turn.Base
	peer jsonrpc.Peer
}

// request asks the agent for something. Its response has the note.
func (l *link) request(method string, params, note any, out *sdk.Out) error {
	line, err := l.peer.Request(method, params, note)
	if err == nil {
		out.Write(line)
	}
	return err
}

func (l *link) reply(id json.RawMessage, result any, out *sdk.Out) {
	if line, err := l.peer.Reply(id, result); err == nil {
		out.Write(line)
	}
}

// refusal is what to say of a request that the agent refused; "" if it did not.
func (l *link) refusal(m *jsonrpc.Message) string {
	if m.Error == nil {
		return ""
	}
	return l.Agent + " refused " + m.Call.Method + ": " + m.Error.Message
}
