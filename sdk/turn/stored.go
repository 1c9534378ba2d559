package turn

import (
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// Stored writes the events of a session that is read from the agent's store. It is its
// own sink.
type Stored struct {
	Writer
	Yield   func(pluginapi.Payload, time.Time) bool // as of sdk.SessionReader
	At      time.Time                               // of the line that is read
	Stopped bool                                    // Yield wants no more
	turns   int
	inTurn  bool
}

// Event passes an event to the caller.
func (s *Stored) Event(p pluginapi.Payload) {
	if !s.Stopped && !s.Yield(p, s.At) {
		s.Stopped = true
	}
}

// Prompt begins a turn with what somebody said.
func (s *Stored) Prompt(id, text string) {
	s.StartTurn()
	s.Event(pluginapi.UserMessage{ID: id, Text: text})
}

// StartTurn begins a turn, after the one before.
func (s *Stored) StartTurn() {
	s.EndTurn()
	s.Event(pluginapi.TurnStart{TurnIndex: s.turns})
	s.inTurn = true
}

// EndTurn ends the turn, if there is one, and what is open in it, but for what goes on in
// the background.
func (s *Stored) EndTurn() {
	s.Main().End(s)
	s.CloseToolsWhere(s.foreground, "the session has no result of this tool", s)
	if s.inTurn {
		s.Event(pluginapi.TurnEnd{TurnIndex: s.turns})
		s.turns++
		s.inTurn = false
	}
}

// Long tells the place of a line that is too long to be read, and returns false when no
// more are wanted: it is sessionfile.Visit's.
func (s *Stored) Long(offset, length int64) bool {
	s.Event(pluginapi.Log{Source: "session", Offset: &offset, Length: &length})
	return !s.Stopped
}

// End ends the session.
func (s *Stored) End(id string) {
	s.EndTurn()
	s.CloseTools("the session does not say how it ended", s)
	s.Event(pluginapi.SessionEnd{SessionID: id, TurnCount: s.turns})
}
