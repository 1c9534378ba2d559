// Package screen makes of what became of a run's terminal what it shows.
package screen

import (
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/vt"
)

// Follow does the next piece to a screen and returns it, or the screen of a new
// terminal. It is nil before there is one.
func Follow(s *vt.Screen, p host.TerminalPiece) *vt.Screen {
	switch {
	case p.Opened:
		return vt.NewScreen(p.Cols, p.Rows)
	case s == nil:
	case p.Cols > 0:
		s.Resize(p.Cols, p.Rows)
	default:
		s.Write(p.Output)
	}
	return s
}
