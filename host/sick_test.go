//go:build linux

package host_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// sickness is something that goes wrong in a run, told by the agent.
type sickness struct {
	name   string
	script string
	state  string
	code   pluginapi.Code
	says   string
	has    string // an event that must be there
}

// suffer runs all sicknesses at once in the process of one plugin that also serves
// healthy runs, and checks each for what it should come to.
func suffer(t *testing.T, trouble agents.Trouble, sicknesses []sickness) {
	t.Helper()
	s := agents.NewStage(t, "same", string(trouble), "other", "healthy")
	h := hurried(t, s.Options())
	five := stand(t, s, h, "same", 5)
	others := stand(t, s, h, "other", 1)
	var wg sync.WaitGroup
	for _, sick := range sicknesses {
		wg.Go(func() {
			r, err := h.Start(t.Context(), host.RunSpec{Agent: "same", Prompt: "lines 20\n" + sick.script + "\nlines 20"})
			if err != nil {
				t.Errorf("%s: %v", sick.name, err)
				return
			}
			var got bytes.Buffer
			if err := r.CopyEvents(t.Context(), &got, 1); err != nil {
				t.Errorf("%s: %v", sick.name, err)
			}
			end, _ := r.Wait(context.Background())
			if end.State != sick.state || end.End.Code != sick.code || !strings.Contains(end.End.Message, sick.says) {
				t.Errorf("%s: %s, %s %q; want %s, %s … %q", sick.name, end.State, end.End.Code, end.End.Message, sick.state, sick.code, sick.says)
			}
			if end.End.Code == pluginapi.CodePluginCrashed && !strings.HasPrefix(end.End.Message, "plugin same ") && !strings.HasPrefix(end.End.Message, "plugin same:") {
				t.Errorf("%s: %q does not name the plugin", sick.name, end.End.Message)
			}
			if !strings.Contains(got.String(), sick.has) {
				t.Errorf("%s: no %s", sick.name, sick.has)
			}
			if n := strings.Count(got.String(), `{"type":"run_end"`); n != 1 {
				t.Errorf("%s: it ends %d times", sick.name, n)
			}
			if n := strings.Count(got.String(), `"delta":"line 20\n"`); n < 1 {
				t.Errorf("%s: what came before is lost", sick.name)
			}
			file, err := os.ReadFile(filepath.Join(r.Dir(), "events.jsonl"))
			if err != nil || !bytes.Equal(file, got.Bytes()) {
				t.Errorf("%s: events.jsonl is not what was told: %v", sick.name, err)
			}
			var again bytes.Buffer
			if err := h.Replay(t.Context(), r.ID(), &again); err != nil {
				t.Errorf("%s: replay: %v", sick.name, err)
			} else if d := agents.Difference(again.String(), got.String()); d != "" {
				t.Errorf("%s: replay: %s", sick.name, d)
			}
		})
	}
	wg.Wait()
	five.finish(h)
	others.finish(h)
}

// An adapter panics, hangs or dies at a line or at the end. Its run says so; runs
// that share the process lose nothing.
func TestAdapterFails(t *testing.T) {
	t.Parallel()
	crashed := pluginapi.CodePluginCrashed
	suffer(t, agents.Healthy, []sickness{
		{"panic", "do panic", "failed", crashed, "panic: told to panic", `"type":"error"`},
		{"panic at exit", "arm panic", "failed", crashed, "panic: told to panic", `"type":"turn_end"`},
		{"goroutine panic", "do goroutine-panic", "failed", crashed, "died: panic: told to panic elsewhere (converse) at input ", `"type":"error"`},
		{"exit", "do exit", "failed", crashed, "died (converse) at input ", `"type":"error"`},
		{"exit at exit", "arm exit", "failed", crashed, "died (converse) at input ", `"type":"turn_end"`},
		{"hang", "do hang", "failed", crashed, "made no progress for " + patience.String() + " at input ", `"type":"error"`},
		{"hang at exit", "arm hang", "failed", crashed, "made no progress for " + patience.String() + " at input ", `"type":"turn_end"`},
		{"child holds stdout", "do orphan", "failed", crashed, "died (converse) at input ", `"type":"error"`},
		{"prints", "do print", "completed", "", "", `"type":"turn_end"`},
	})
}

// An adapter breaks the contract in what it makes of the lines.
func TestAdapterBreaksTheContract(t *testing.T) {
	t.Parallel()
	crashed := pluginapi.CodePluginCrashed
	suffer(t, agents.Healthy, []sickness{
		{"two outcomes", "do outcomes\nexit 0", "failed", pluginapi.CodeOverloaded, "the last one wins", ""},
		{"another run's event", `event text_delta {"run_id":"01ARYZ6S41TSV4RRFFQ69G5FAV","delta":"x"}`, "failed", crashed, "broke the contract: it sent a malformed text_delta event", ""},
		{"a number of its own", `event text_delta {"delta":"x","seq":1}`, "failed", crashed, "broke the contract", ""},
		{"run_end", `event run_end {"state":"completed"}`, "failed", crashed, "sent run_end, which the host alone writes", ""},
		{"run_state", `event run_state {"from":"running","to":"completed"}`, "failed", crashed, "sent run_state, which the host alone writes", ""},
		{"no JSON", `event text_delta {"delta":"x"`, "failed", crashed, "malformed", ""},
		{"two objects", `event text_delta {"delta":"x"}{}`, "failed", crashed, "malformed", ""},
		{"an array", `event text_delta ["x"]`, "failed", crashed, "malformed", ""},
		{"bad type", `event Text-Delta {"delta":"x"}`, "failed", crashed, "is not snake_case", ""},
		{"unknown type", `event from_the_future {"delta":"x"}`, "completed", "", "", `"type":"from_the_future"`},
		{"other shapes", `event cost {"cost":"a lot"}`, "completed", "", "", `"cost":"a lot"`},
		{"endless money", "event cost {\"cost\":{\"usd\":1e308}}\nevent cost {\"cost\":{\"usd\":1e308}}", "completed", "", "", `"usd":1e308`},
		{"too many tokens", "event token_usage {\"input_tokens\":9223372036854775807}\nevent token_usage {\"input_tokens\":9223372036854775807}", "completed", "", "", "token_usage"},
		{"a giant event", "do big 20000000", "completed", "", "", "xxxxxxxxxxxxxxxx"},
		{"a flood of events", "do events 50000", "completed", "", "", `"delta":"49999"`},
		{"session over twice", "event session_end {\"session_id\":\"x\",\"turn_count\":0}\nevent session_end {\"session_id\":\"x\",\"turn_count\":0}", "completed", "", "", ""},
	})
}

// A plugin breaks the contract on the wire, as one without our SDK could.
func TestPluginBreaksTheWire(t *testing.T) {
	t.Parallel()
	crashed := pluginapi.CodePluginCrashed
	suffer(t, agents.BreaksTheWire, []sickness{
		{"ahead", "breach ahead", "failed", crashed, "sent an output for input ", ""},
		{"closed", "breach closed", "failed", crashed, "sent an output for input 1, which is not open", ""},
		{"order", "breach order", "failed", crashed, "out of order", ""},
		{"done beyond", "breach done-beyond", "failed", crashed, "is done", ""},
		{"done back", "breach done-back", "failed", crashed, "said that input 1 is done", ""},
		{"empty outcome", "breach no-outcome", "failed", crashed, "an outcome that says nothing", ""},
		{"unknown output", "breach unknown-kind", "completed", "", "", ""},
		{"mixed pieces", "breach mixed-pieces", "failed", crashed, "mixed the pieces", ""},
		{"no answer", "breach no-ack", "failed", crashed, "made no progress for " + patience.String() + " at input ", ""},
		{"half an input", "breach half", "failed", crashed, "died (converse) at input ", ""},
		{"flood forever", "breach flood", "failed", crashed, "made more than 64 MiB of one input", ""},
		{"endless event", "breach endless-event", "failed", crashed, "made more than 64 MiB of one input", ""},
		{"endless last words", "breach endless-stop", "failed", crashed, "made more than 64 MiB of one input", ""},
		{"endless stdin", "breach endless-write", "failed", crashed, "wrote more than 16 MiB at once", ""},
	})
}

// A plugin process that hangs in one run goes on with those it serves well, and is
// given to no other; it is ended with the last of them.
func TestPluginThatHangsGetsNoNewRuns(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "sticky", "healthy")
	h := hurried(t, s.Options())
	old := stand(t, s, h, "sticky", 2)
	pids := func() (pids []int) {
		for _, p := range agents.Plugins(os.Getpid(), "sticky") {
			pids = append(pids, p.PID)
		}
		return pids
	}
	first := pids()
	if len(first) != 1 {
		t.Fatalf("plugin processes: %v", first)
	}
	hung := s.Start(h, host.RunSpec{Agent: "sticky", Prompt: "do hang"})
	if end, _ := hung.Wait(context.Background()); end.End.Code != pluginapi.CodePluginCrashed {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	fresh := stand(t, s, h, "sticky", 2)
	now := pids()
	if len(now) != 2 || !slices.Contains(now, first[0]) {
		t.Errorf("plugin processes: %v, then %v", first, now)
	}
	old.finish(h)
	agents.Eventually(t, time.Minute, "the old process is ended", func() bool {
		now := pids()
		return len(now) == 1 && now[0] != first[0]
	})
	fresh.finish(h)
	// One that hangs and serves nobody else is ended at once.
	hung = s.Start(h, host.RunSpec{Agent: "sticky", Prompt: "do hang"})
	hung.Wait(context.Background())
	agents.Eventually(t, time.Minute, "no process is left", func() bool { return len(pids()) == 0 })
}

// A plugin that takes all the memory it can get is ended, and the run says why.
func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "same", "healthy")
	h := hurried(t, s.Options())
	h.Limit(time.Minute, 64<<20) // a machine that is busy takes its time
	h.LimitMemory(256 << 20)
	r, err := h.Start(t.Context(), host.RunSpec{Agent: "same", Prompt: "lines 20\ndo eat\nlines 20"})
	if err != nil {
		t.Fatal(err)
	}
	end, _ := r.Wait(context.Background())
	if want := "was ended: it held more than 256 MiB of memory (converse) at input "; end.End.Code != pluginapi.CodePluginCrashed || !strings.Contains(end.End.Message, want) {
		t.Errorf("%s, %s %q; want … %q", end.State, end.End.Code, end.End.Message, want)
	}
}

// A plugin that is slow because of all the memory it takes is told from one that waits.
func TestHungPluginWithMuchMemory(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "same", "healthy")
	h := hurried(t, s.Options())
	h.LimitMemory(1 << 30)
	hung := "^plugin same made no progress for " + patience.String() + " at input [0-9]+"
	for script, want := range map[string]string{"do hoard 200": hung + "; it holds [2-9][0-9][0-9] MiB of memory$", "do hang": hung + "$"} {
		result, _ := s.Start(h, host.RunSpec{Agent: "same", Prompt: script}).Wait(context.Background())
		end := result.End
		if !regexp.MustCompile(want).MatchString(end.Message) {
			t.Errorf("%s: %q, want %s", script, end.Message, want)
		}
		if strings.Contains(end.Hint, "recurse") != strings.Contains(want, "memory") {
			t.Errorf("%s: hint %q", script, end.Hint)
		}
	}
}

// A plugin that takes much memory before a run has begun is told by that, too.
func TestPluginsThatHoardAtStart(t *testing.T) {
	t.Parallel()
	for trouble, want := range map[agents.Trouble]string{
		agents.HoardAtStart: "plugin same was ended before its handshake: it held more than 256 MiB of memory$",
		agents.HoardAtPlan: "plugin same (gave no answer within " + patience.String() + "; it holds 2[0-9][0-9]" +
			"|was ended: it held more than 256) MiB of memory \\(plan\\)$", // with the race detector it holds more
	} {
		s := agents.NewStage(t, "same", string(trouble))
		h := hurried(t, s.Options())
		h.LimitMemory(256 << 20)
		_, err := h.Start(t.Context(), host.RunSpec{Agent: "same", Prompt: "say hi"})
		if e := pluginapi.AsError(err); e == nil || e.Code != pluginapi.CodePluginCrashed || !regexp.MustCompile(want).MatchString(e.Error()) || !strings.Contains(e.Hint, "collect without end") {
			t.Errorf("%s: %v, want %s", trouble, err, want)
		}
	}
}

// A plugin that recurses without end says so before it dies.
func TestEndlessRecursion(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "same", "healthy")
	h := hurried(t, s.Options())
	result, _ := s.Start(h, host.RunSpec{Agent: "same", Prompt: "do recurse"}).Wait(context.Background())
	end := result.End
	if want := "plugin same died: fatal error: stack overflow (converse) at input "; !strings.HasPrefix(end.Message, want) {
		t.Errorf("%q, want %q …", end.Message, want)
	}
}
