package turn

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What is said in pieces of any size, runes cut in two and invalid bytes among them, is kept as it came.
func TestSpeech(t *testing.T) {
	pieces := []string{"a", "word ", "ü", "\xe2\x82", "\xac", "\xff", strings.Repeat("line\n", 40_000), strings.Repeat("€", 100_000), ""}
	random := rand.New(rand.NewPCG(1, 2))
	var s speech
	for round := range 3 { // it is used again
		var want strings.Builder
		for want.Len() < (round+1)*4*partSize {
			piece := pieces[random.IntN(len(pieces))]
			want.WriteString(piece)
			if random.IntN(2) == 0 {
				s.WriteString(piece)
			} else {
				s.Write([]byte(piece))
			}
		}
		if s.String() != want.String() {
			t.Fatalf("round %d: the text is another", round)
		}
		if !s.Long() || len(s.parts) < 3 {
			t.Errorf("%d bytes are in %d parts", want.Len(), len(s.parts))
		}
		held := 0
		for _, part := range s.parts {
			held += cap(part)
		}
		if held > want.Len()/3 {
			t.Errorf("of %d bytes %d are held", want.Len(), held)
		}
		for range s.Parts() {
			break // who asks need not take all
		}
		// Each byte of a rune that is cut in two counts as a wrong one.
		var apart strings.Builder
		for part := range s.Parts() {
			apart.WriteString(string([]rune(part)))
		}
		if apart.String() != string([]rune(want.String())) {
			t.Errorf("round %d: a part begins within a rune", round)
		}
		s.Reset()
		if s.Long() || s.String() != "" {
			t.Error("there is text after Reset")
		}
	}
}
