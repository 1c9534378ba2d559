//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// printed is what the terminal of a run has got so far.
func printed(t *testing.T, r *host.Run) string {
	t.Helper()
	var all []byte
	for p, err := range r.Terminal(context.Background(), false) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Output...)
	}
	return string(all)
}

func printsOnTerminal(t *testing.T, r *host.Run, want string) {
	t.Helper()
	agents.Eventually(t, time.Minute, "on the terminal: "+want, func() bool { return strings.Contains(printed(t, r), want) })
}

// copied are the events of a run as bytes.
func copied(t *testing.T, r *host.Run) []byte {
	t.Helper()
	var all bytes.Buffer
	if err := r.CopyEvents(context.Background(), &all, 1); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// An agent on a terminal has the same events as one on pipes: colours and what
// else it does to its screen are gone before the adapter sees a line. A replay
// makes the same.
func TestRunOnTerminal(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	var texts [2][]string
	for i, pty := range []bool{false, true} {
		r := s.Start(h, host.RunSpec{Agent: "fake", PTY: pty, Prompt: strings.Join([]string{
			`say plain`, `out \x1b[1;31mt colou\x1b[0mred\r\n`, `out \x1b]0;title\x07t \x1b[6nw\u4e16\u009b31mide\n`,
			`big 9000`, `err t on stderr\n`}, "\n")})
		if end, _ := r.Wait(context.Background()); end.State != "completed" {
			t.Fatalf("%s, %v\n%s", end.State, end.Err, copied(t, r))
		}
		for event, err := range r.Events(context.Background(), 1) {
			var delta pluginapi.TextDelta
			if err != nil {
				t.Fatal(err)
			}
			if event.Type == "text_delta" && event.Decode(&delta) == nil {
				texts[i] = append(texts[i], delta.Delta)
			}
		}
		if !pty {
			if len(texts[0]) > 1 && strings.Contains(texts[0][1], "\x1b") {
				t.Error("stripped on pipes")
			}
			continue
		}
		var again bytes.Buffer
		if err := h.Replay(context.Background(), r.ID(), &again); err != nil {
			t.Fatal(err)
		}
		if diff := agents.Difference(again.String(), string(copied(t, r))); diff != "" {
			t.Errorf("replay: %s", diff)
		}
	}
	want := []string{"plain\n", "coloured\n", "w\u4e16ide\n", texts[0][len(texts[0])-1], "on stderr\n"}
	want[3] = "" // that of 9000 bytes
	if len(texts[1]) != len(want) {
		t.Fatalf("%q", texts[1])
	}
	for i, text := range texts[1] {
		if want[i] != "" && text != want[i] {
			t.Errorf("%d: %q, want %q", i, text, want[i])
		}
	}
	if len(texts[1][3]) != 8999 {
		t.Errorf("the long line has %d bytes", len(texts[1][3]))
	}
}

func TestTerminalOfRun(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h, other := s.Host(), s.Host()
	ctx := context.Background()
	r := s.Start(h, host.RunSpec{Agent: "fake", PTY: true, Prompt: "program echo $TERM $LINES.\ntui"})
	printsOnTerminal(t, r, "size 120x40")
	printsOnTerminal(t, r, `\x1b[5;7R\x1b[?62;22c`)
	if !strings.Contains(printed(t, r), "xterm-256color .\r\n") {
		t.Errorf("%q", printed(t, r))
	}
	// Another process of the user does the same by way of the shim.
	there, err := other.Open(ctx, r.ID())
	if err != nil {
		t.Fatal(err)
	}
	followed := make(chan string, 1)
	go func() {
		var all strings.Builder
		for p, err := range there.Terminal(ctx, true) {
			if err != nil {
				fmt.Fprintf(&all, "ERROR %v", err)
			}
			if p.Current {
				all.WriteString("<current>")
			}
			if p.Cols > 0 {
				fmt.Fprintf(&all, "<%dx%d %v>", p.Cols, p.Rows, p.Opened)
			}
			all.Write(p.Output)
		}
		followed <- all.String()
	}()
	if err := there.Resize(ctx, 90, 30); err != nil {
		t.Fatal(err)
	}
	printsOnTerminal(t, r, "size 90x30")
	if err := there.Keys(ctx, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	printsOnTerminal(t, r, `typed "abc"`)
	if err := r.Keys(ctx, []byte("dq")); err != nil {
		t.Fatal(err)
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" || end.Text != "typed \"abcd\"\n" {
		t.Errorf("%s %q %v", end.State, end.Text, end.Err)
	}
	select {
	case all := <-followed:
		for _, want := range []string{"<120x40 true>", "<current>", "<90x30 false>", "size 90x30", `typed "abcd"`} {
			if !strings.Contains(all, want) {
				t.Errorf("no %s in %q", want, all)
			}
		}
		all = strings.TrimSuffix(all, "<current>") // the run may have ended before the follower began
		if strings.Contains(all, "ERROR") || !strings.HasSuffix(strings.TrimSpace(all), "end") {
			t.Errorf("%q", all)
		}
	case <-time.After(time.Minute):
		t.Error("the follower did not end with the run")
	}
	kept := ""
	for p, err := range open(t, other, r.ID()).Terminal(ctx, false) {
		if err != nil {
			t.Error(err)
		}
		kept += string(p.Output)
	}
	if !strings.Contains(kept, `typed "abcd"`) {
		t.Errorf("what was on it is gone with it: %q", kept)
	}
	for _, err := range []error{r.Keys(ctx, []byte("x")), there.Resize(ctx, 80, 24)} {
		if !errors.Is(err, pluginapi.CodeRunNotActive) {
			t.Errorf("after the end: %v", err)
		}
	}
}

func TestInterruptOnTerminal(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	ctx := context.Background()
	r := s.Start(h, host.RunSpec{Agent: "fake", PTY: true, Prompt: "say ready\nsleep 1000"})
	printsOnTerminal(t, r, "ready")
	if err := r.Interrupt(ctx); err != nil {
		t.Fatal(err)
	}
	if end, _ := r.Wait(context.Background()); end.End.Signal != "SIGINT" {
		t.Errorf("%s %s %v", end.State, end.End.Reason, end.Err)
	}
}

func TestNoTerminal(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	ctx := context.Background()
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say ready\nsleep 1000"})
	defer func() { _ = r.Kill(ctx); r.Wait(context.Background()) }()
	for _, follow := range []bool{false, true} {
		for _, err := range r.Terminal(ctx, follow) {
			if !errors.Is(err, pluginapi.CodeCapability) || pluginapi.AsError(err).Hint == "" {
				t.Errorf("%v", err)
			}
		}
	}
	for _, err := range []error{r.Keys(ctx, []byte("x")), r.Resize(ctx, 80, 24), r.Interrupt(ctx)} {
		if !errors.Is(err, pluginapi.CodeCapability) {
			t.Errorf("%v", err)
		}
	}
}

// The shim of a run on a terminal stays as small as others.
func TestShimOnTerminalIsSmall(t *testing.T) {
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "fake", PTY: true, Prompt: "say ready\nprogram read line\nlines 20000\nsay done\nsleep 1000"})
	defer func() { _ = r.Kill(context.Background()); r.Wait(context.Background()) }()
	shim := 0
	for _, id := range process.Descendants(os.Getpid()) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id.PID)); strings.TrimSpace(string(name)) == "amux-shim" {
			shim = id.PID
		}
	}
	if shim == 0 {
		t.Fatal("no shim")
	}
	// Six threads are usual; the runtime keeps those that a busy machine made it
	// start for once.
	const threads = 8
	small := func(when string) {
		t.Helper()
		time.Sleep(100 * time.Millisecond)
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", shim))
		if err != nil {
			t.Fatal(err)
		}
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", shim))
		if err != nil {
			t.Skipf("memory cannot be measured here: %v", err)
		}
		pss := 0
		for line := range strings.Lines(string(rollup)) {
			_, _ = fmt.Sscanf(line, "Pss: %d kB", &pss)
		}
		t.Logf("%s: %d threads, %d KB", when, len(tasks), pss)
		if len(tasks) > threads || pss > 7<<10 {
			t.Errorf("%s the shim has %d threads and %d KB; want at most %d and 7168", when, len(tasks), pss, threads)
		}
	}
	printsOnTerminal(t, r, "t ready")
	small("quiet")
	if err := r.Keys(context.Background(), []byte("\n")); err != nil {
		t.Fatal(err)
	}
	printsOnTerminal(t, r, "t done")
	small("after a flood")
}
