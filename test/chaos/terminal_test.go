//go:build linux

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// The kill matrix once more, for agents on a pseudo-terminal: the system ends some
// of what they leave by itself, by a hang-up, and none of it may escape by that.
func TestKillMatrixOnTerminal(t *testing.T) {
	s := agents.NewStage(t, "matrix", "healthy")
	h := s.Host()
	var (
		mu    sync.Mutex
		took  = map[string][]time.Duration{}
		cells = make(chan struct{}, 4)
	)
	t.Run("cells", func(t *testing.T) {
		for _, e := range endings {
			spec := e.spec
			e.spec = func(s *host.RunSpec) {
				if spec != nil {
					spec(s)
				}
				s.PTY = true
			}
			for _, kind := range kinds {
				t.Run(e.name+"/"+kind, func(t *testing.T) {
					t.Parallel()
					for range agents.Times(3, 100) {
						func() {
							cells <- struct{}{}
							defer func() { <-cells }()
							latency := e.round(t, s, h, kind)
							mu.Lock()
							defer mu.Unlock()
							took[e.name+"/"+kind] = append(took[e.name+"/"+kind], latency)
						}()
						if t.Failed() {
							return
						}
					}
				})
			}
		}
	})
	var rows []string
	for _, e := range endings {
		rows = append(rows, e.name)
	}
	t.Log("\n" + latencies("from the end of the last grace to all gone", rows, took))
	checkMedian(t, took)
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// A plugin that dies costs a run on a terminal nothing either: what it is fed
// again is stripped again, to the same lines. Colours are inside them.
func TestPluginDiesOnTerminal(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "painter", "healthy")
	h := s.Host()
	const lines = 3000
	r := s.Start(h, host.RunSpec{Agent: "painter", PTY: true, Prompt: fmt.Sprintf(
		"repeat %d \\x1b[32mt g\\u4e16n\\x1b[0m \\x1b]0;title\\x07end\\r\\n\nsay ready\nsleep 0.3\nrepeat %d \\x1b[6nt again\\n", lines, lines)})
	killed := false
	texts := 0
	for event, err := range r.Events(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		var delta pluginapi.TextDelta
		if event.Type != "text_delta" || event.Decode(&delta) != nil {
			continue
		}
		texts++
		switch delta.Delta {
		case "g\u4e16n end\n", "again\n":
		case "ready\n":
			for _, p := range agents.Plugins(os.Getpid(), "painter") {
				killed = syscall.Kill(p.PID, syscall.SIGKILL) == nil || killed
			}
		default:
			t.Fatalf("%q", delta.Delta)
		}
	}
	end, _ := r.Wait(context.Background())
	if end.State != "completed" || texts != 2*lines+1 || !killed {
		t.Errorf("%s, %v, %d texts, killed: %v", end.State, end.Err, texts, killed)
	}
	var told bytes.Buffer
	if err := r.CopyEvents(context.Background(), &told, 1); err != nil {
		t.Fatal(err)
	}
	same(t, "replay", replay(t, h, r.ID()), told.Bytes())
	if strings.Contains(told.String(), `\u001b`) {
		t.Error("control sequences are in the events")
	}
}
