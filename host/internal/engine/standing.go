package engine

import (
	"slices"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Standing is what people have decided for the rest of a run, by its journal.
type Standing struct {
	Mode  string   // who answers where no rule does; empty: as the run was started
	Allow []string // rules that people have made with their answers
}

// Learn takes in an input, and reports whether it decides something.
func (s *Standing) Learn(in journal.Input) bool {
	switch {
	case in.Kind == code.InputApprove && len(in.Allow) > 0:
		s.Allow = slices.Concat(s.Allow, in.Allow)
	case in.Kind == code.InputSetApprove:
		s.Mode = in.Text
	default:
		return false
	}
	return true
}
