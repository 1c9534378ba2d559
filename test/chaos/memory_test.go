//go:build linux

package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/agents"
)

// resident is the memory of a process, KiB: now (VmRSS:) or at most (VmHWM:); 0 if
// there is no such process.
func resident(pid int, field string) (kib int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), field)
	fmt.Sscan(rest, &kib)
	return kib
}

// What an adapter makes of its input, however much, does not make the host big.
func TestHostStaysSmall(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	peak := func(script string) int {
		k := startHosted(t, s, script, false)
		kib := resident(k.host.PID, "VmHWM:")
		k.kill(k.host)
		k.waitGone(5 * time.Second)
		<-k.ended
		return kib
	}
	usual := peak("say hi")
	for _, much := range []struct {
		name, script string
		more         int // MiB
	}{
		{"an event of 64 MiB", "do big 67108864", 40},
		{"half a million events of one line", "do events 500000", 40},
		{"a line of 64 MiB", "big 67108864", 40},
		{"300,000 lines", "lines 300000", 40},
		{"2,000 lines on stderr at once", `err ` + strings.Repeat(`a line of some length\n`, 2000), 40},
	} {
		if more := (peak(much.script) - usual) >> 10; more > much.more {
			t.Errorf("%s: the host was %d MiB bigger than usual", much.name, more)
		} else {
			t.Logf("%s: %d MiB more than the usual %d", much.name, more, usual>>10)
		}
	}
}
