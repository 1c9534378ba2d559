//go:build linux

package host_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// notes is a log that may be written and read at once.
type notes struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(b)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// What the plugin processes of one run take before they die is counted together: a
// plugin that is slow to die is not started again and again.
func TestPluginThatIsSlowToDie(t *testing.T) {
	t.Parallel()
	for _, slow := range []struct {
		name, script string
		processes    int
	}{
		// Two where nothing else runs. On a busy machine one gets further, which counts as
		// progress; without a common deadline there are eight.
		{"one after the other", "do nap 700", 4},
		{"too large a message", "breach huge", 1},
	} {
		t.Run(slow.name, func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t, "slow", string(agents.BreaksTheWire))
			o := s.Options()
			log := &notes{}
			o.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: log})
			h := hurried(t, o)
			h.LimitStall(time.Second)
			r, err := h.Start(t.Context(), host.RunSpec{Agent: "slow", Prompt: "lines 20\n" + slow.script + "\nlines 20"})
			if err != nil {
				t.Fatal(err)
			}
			end, _ := r.Wait(context.Background())
			if end.End.Code != pluginapi.CodePluginCrashed || end.End.Hint == "" && pluginapi.CodePluginCrashed.Info().Hint == "" {
				t.Errorf("%s, %s %q", end.State, end.End.Code, end.End.Message)
			}
			if n := strings.Count(log.String(), "conversation failed"); n > slow.processes {
				t.Errorf("%d plugin processes were tried, want %d at most\n%s", n, slow.processes, log)
			}
		})
	}
}
