package main

import (
	"bytes"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/turn"
)

// screen is OpenClaw's own screen on a terminal. Its lines are a picture, made for
// eyes, so that nothing is read from them but that it is there to be typed on.
type screen struct {
	turn.Base
	there   bool
	waiting [][]byte // prompts
}

// ready is on the screen from when it takes what is typed.
var ready = []byte("session agent:")

// Handle turns one input into outputs.
func (s *screen) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		if !s.there && bytes.Contains(in.Data, ready) {
			s.there = true
			s.TurnStart(out)
			for _, prompt := range s.waiting {
				s.enter(prompt, out)
			}
			s.waiting = nil
		}
		out.Log("screen", in.Data)
	case pb.InputKind_INPUT_PROMPT:
		s.Prompts++
		if s.there {
			s.enter(in.Data, out)
		} else {
			s.waiting = append(s.waiting, in.Data)
		}
	case pb.InputKind_INPUT_INTERRUPT:
		s.Interrupt(out)
		out.Write([]byte("\x1b"))
	case pb.InputKind_INPUT_END:
		out.Write([]byte("/exit\r"))
	case pb.InputKind_INPUT_EXIT:
		// Whoever sat there has left it.
		if exit := in.GetExit(); s.InTurn() && !exit.GetAsked() && exit.GetSignal() == "" && exit.GetCode() == 0 {
			s.TurnEnd(nil, nil, out)
		}
		s.Base.Handle(in, out)
	default:
		s.Base.Handle(in, out)
	}
	return nil
}

// enter types a prompt as one that is pasted, so that its lines stay together.
func (s *screen) enter(prompt []byte, out *sdk.Out) {
	out.Write(append(append([]byte("\x1b[200~"), prompt...), "\x1b[201~\r"...))
}
