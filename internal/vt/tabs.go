package vt

// tabStops are the columns where a tab stops. The zero value is a stop every eight
// columns, as a terminal has when it is switched on.
type tabStops struct {
	set []bool // nil: every eight
}

func (s *tabStops) at(x int) bool {
	if s.set == nil || x >= len(s.set) {
		return x%8 == 0
	}
	return s.set[x]
}

// change sets or clears the stop at x of a terminal of that many columns.
func (s *tabStops) change(x, cols int, on bool) {
	for i := len(s.set); i < cols; i++ {
		s.set = append(s.set, i%8 == 0)
	}
	s.set[x] = on
}

// clear removes all stops.
func (s *tabStops) clear(cols int) { s.set = make([]bool, cols) }

// next returns the column that n tabs lead to from x, previous the one that n
// backward tabs do. They end at the edges.
func (s *tabStops) next(x, n, cols int) int {
	for ; n > 0 && x < cols-1; n-- {
		for x++; x < cols-1 && !s.at(x); x++ {
		}
	}
	return x
}

func (s *tabStops) previous(x, n int) int {
	for ; n > 0 && x > 0; n-- {
		for x--; x > 0 && !s.at(x); x-- {
		}
	}
	return x
}
