package e2e

import (
	"os"
	"testing"
)

// Memory and time of a start grow with a program. What makes one suddenly bigger is mostly
// one call that has the linker keep each method of each type (text/template, net/rpc).
func TestSizeOfPrograms(t *testing.T) {
	t.Parallel()
	for program, most := range map[string]int64{"amux": 16 << 20, "amux-shim": 3 << 20, "plugins/claude/amux-plugin-claude": 11 << 20} {
		info, err := os.Stat("../../bin/" + program)
		if err != nil {
			t.Fatal("bin is not there: make build")
		}
		if info.Size() > most {
			t.Errorf("%s has %.1f MB, more than %.1f", program, float64(info.Size())/(1<<20), float64(most)/(1<<20))
		}
	}
}
