//go:build linux

package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// What a hostile plugin may cost.
const (
	hostileTime  = 10 * time.Second
	hostileDelay = 5 * time.Millisecond // of the median answer in other runs
)

// pulse is a conversation of another plugin. It shows whether others are slowed down.
type pulse struct {
	run  *host.Run
	turn chan bool
}

func newPulse(t *testing.T, s *agents.Stage, h *host.Host, agent string) *pulse {
	t.Helper()
	p := &pulse{s.Start(h, host.RunSpec{Agent: agent, Prompt: "say hi", Conversation: true, Limits: host.Limits{Timeout: 10 * time.Minute}}), make(chan bool, 1)}
	go func() { _ = p.run.CopyEvents(context.Background(), p, 1) }() // until the run ends
	p.wait(t)
	return p
}

func (p *pulse) Write(events []byte) (int, error) {
	for range bytes.Count(events, []byte(`{"type":"turn_end"`)) {
		p.turn <- true
	}
	return len(events), nil
}

func (p *pulse) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.turn:
	case <-time.After(time.Minute):
		t.Fatal("another run waits for its answer")
	}
}

// beats are how many answers make a median, at least, and pause what is between them.
const (
	beats = 51
	pause = 5 * time.Millisecond
)

// median is that of the time from a prompt to the end of its turn, until over.
func (p *pulse) median(t *testing.T, over func() bool) time.Duration {
	t.Helper()
	var all []time.Duration
	for len(all) < beats || !over() {
		time.Sleep(pause)
		since := time.Now()
		if err := p.run.Send(context.Background(), "say hi"); err != nil {
			t.Fatal(err)
		}
		p.wait(t)
		all = append(all, time.Since(since))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// memoryOf reads a figure of this process, in KiB.
func memoryOf(t *testing.T, figure string) int {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, "/proc/self/status"), figure+":")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

// A plugin that means harm, or might as well: its own run ends in time with an error
// that says why, the host does not grow, and the runs of others hardly notice.
func TestHostilePlugins(t *testing.T) {
	// Not beside other tests: it is about time and memory.
	crashed := pluginapi.CodePluginCrashed
	outside := t.TempDir()
	file := filepath.Join(outside, "file")
	must(t, os.WriteFile(file, []byte("kept"), 0o600))
	s := agents.NewStage(t, "calm", "healthy", "hostile", string(agents.BreaksTheWire), "liar", string(agents.OtherAgent))
	h, err := host.New(s.Options())
	must(t, err)
	h.LimitMemory(256 << 20) // for the machine's sake
	defer h.Close(context.Background())
	calm := newPulse(t, s, h, "calm")
	const tooMuch = "made more than 128 MiB of one input"
	for _, hostile := range []struct {
		name, agent, script string
		code                pluginapi.Code
		says                string
	}{
		{"memory bomb", "hostile", "do eat", crashed, "held more than 256 MiB of memory (converse) at input "},
		{"descriptor flood", "hostile", "do files", crashed, "too many open files"},
		{"event flood", "hostile", "breach flood", crashed, tooMuch},
		{"giant event", "hostile", "breach endless-event", crashed, tooMuch},
		{"slow loris", "hostile", "breach loris", crashed, "made no progress for 4s at input "},
		{"lying Describe", "liar", "say hi", pluginapi.CodePluginInvalid, "and describe.json"},
		{"events for another run", "hostile", `event text_delta {"run_id":"01ARYZ6S41TSV4RRFFQ69G5FAV","delta":"x"}`, crashed, "broke the contract"},
		{"outcome twice", "hostile", "do outcomes\nexit 0", pluginapi.CodeOverloaded, "the last one wins"},
		{"writes outside its folder", "hostile", "do outside " + outside, crashed, "0 changes were allowed outside, and inside <nil>"},
		{"never acknowledges", "hostile", "breach no-ack", crashed, "made no progress for 4s at input "},
	} {
		t.Run(hostile.name, func(t *testing.T) {
			if strings.HasPrefix(hostile.script, "do outside") && sandbox.Offered().Landlock < 3 {
				t.Skip("this kernel's Landlock cannot keep a plugin from all of that")
			}
			// harm lets it loose once, and says how long that took.
			harm := func() time.Duration {
				since := time.Now()
				var failed error
				r, err := h.Start(context.Background(), host.RunSpec{Agent: hostile.agent, Prompt: hostile.script, Limits: host.Limits{Timeout: time.Minute}})
				if err != nil {
					failed = err
				} else {
					_, failed = r.Wait(context.Background())
				}
				took := time.Since(since)
				e := pluginapi.AsError(failed)
				// A busy machine may not come to so much in time.
				slow := hostile.says == tooMuch && e != nil && strings.Contains(e.Error(), "made no progress for 4s")
				if failed == nil || e.Code != hostile.code || !slow && !strings.Contains(e.Error(), hostile.says) {
					t.Errorf("it ended with %v, want %s … %q", failed, hostile.code, hostile.says)
				}
				return took
			}
			debug.FreeOSMemory()
			idle := memoryOf(t, "VmRSS")
			must(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // the peak counts from here
			var took []time.Duration
			best := time.Hour
			for range 3 {
				quiet := calm.median(t, func() bool { return true })
				ended := make(chan bool)
				go func() {
					defer close(ended)
					for since := time.Now(); len(took) == 0 || time.Since(since) < beats*pause; {
						took = append(took, harm())
					}
				}()
				harmed := calm.median(t, func() bool {
					select {
					case <-ended:
						return true
					default:
						return false
					}
				})
				<-ended
				if best = min(best, harmed-quiet); best <= hostileDelay || t.Failed() {
					break
				}
			}
			peak := memoryOf(t, "VmHWM")
			slices.Sort(took)
			t.Logf("%d runs ended within %v to %v; others' median %v later; the host held %d MiB, idle %d",
				len(took), took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), best.Round(time.Microsecond), peak>>10, idle>>10)
			if instrumented { // everything is slower and larger, and not evenly
				return
			}
			// Twice the time and five times the delay that are promised, for a busy machine.
			if limit := 2 * hostileTime; took[0] > limit {
				t.Errorf("the fastest took %v, want at most %v", took[0], limit)
			}
			if limit := 5 * hostileDelay; best > limit {
				t.Errorf("others' median is %v later, want at most %v", best, limit)
			}
			if peak > 2*idle {
				t.Errorf("the host held %d MiB, idle %d", peak>>10, idle>>10)
			}
		})
	}
	if got := read(t, file); got != "kept" {
		t.Errorf("the file outside is %q", got)
	}
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("outside there is %v", left)
	}
	if err := calm.run.End(context.Background()); err != nil {
		t.Error(err)
	}
	if end, _ := calm.run.Wait(context.Background()); end.State != "completed" {
		t.Errorf("the other run: %s, %v", end.State, end.Err)
	}
}
