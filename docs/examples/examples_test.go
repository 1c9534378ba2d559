// Package examples shows how programs use package host. Each function below is one task;
// the test runs it with the agents of package hosttest and checks what it prints.
package examples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/hosttest"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// stream starts a run and prints the assistant's text as it comes.
func stream(ctx context.Context, h *host.Host, w io.Writer) error {
	run, err := h.Start(ctx, host.RunSpec{Agent: "claude", Prompt: "hello"})
	if err != nil {
		return err
	}
	for event, err := range run.Events(ctx, 1) {
		if err != nil {
			return err
		}
		switch e := event.Payload().(type) {
		case pluginapi.TextDelta:
			fmt.Fprint(w, e.Delta)
		case pluginapi.RunEnd:
			fmt.Fprintf(w, "\n%s after %d turn\n", e.State, e.Turns)
		}
	}
	return nil
}

// approve answers the agent's questions by code.
func approve(ctx context.Context, h *host.Host, w io.Writer) error {
	run, err := h.Start(ctx, host.RunSpec{Agent: "asks", Prompt: "clean up", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	if err != nil {
		return err
	}
	for event, err := range run.Events(ctx, 1) {
		if err != nil {
			return err
		}
		request, ok := event.Payload().(pluginapi.ApprovalRequest)
		if !ok {
			continue
		}
		if request.ToolKind == pluginapi.ToolShell && request.Detail == "make test" {
			err = run.Approve(ctx, request.InteractionID, nil)
		} else {
			err = run.Deny(ctx, request.InteractionID, "only make test may run")
		}
		if err != nil {
			return err
		}
	}
	result, err := run.Wait(ctx)
	fmt.Fprintln(w, result.Text)
	return err
}

// converse gives an agent a second prompt when it has answered the first.
func converse(ctx context.Context, h *host.Host, w io.Writer) error {
	run, err := h.Start(ctx, host.RunSpec{Agent: "claude", Prompt: "first", Conversation: true})
	if err != nil {
		return err
	}
	for event, err := range run.Events(ctx, 1) {
		if err != nil {
			return err
		}
		switch e := event.Payload().(type) {
		case pluginapi.MessageStop:
			fmt.Fprintln(w, e.Text)
		case pluginapi.TurnEnd:
			if e.TurnIndex == 0 {
				err = run.Send(ctx, "second")
			} else {
				err = run.End(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	_, err = run.Wait(ctx)
	return err
}

// detach starts a run that outlives its host, and takes it up in another one, which may be
// in another process.
func detach(ctx context.Context, first, second *host.Host, w io.Writer) error {
	run, err := first.Start(ctx, host.RunSpec{Agent: "slow", Prompt: "build", Name: "nightly", Detached: true})
	if err != nil {
		return err
	}
	if err := first.Close(ctx); err != nil {
		return err
	}
	if _, err := second.Adopt(ctx); err != nil { // else nobody reads what the agent says
		return err
	}
	again, err := second.Open(ctx, "nightly")
	if err != nil {
		return err
	}
	result, err := again.Wait(ctx)
	fmt.Fprintln(w, again.ID() == run.ID(), result.Text)
	return err
}

// limits ends runs that take too long or cost too much, and tells the two apart.
func limits(ctx context.Context, h *host.Host, w io.Writer) error {
	for _, spec := range []host.RunSpec{
		{Agent: "hangs", Prompt: "go", Limits: host.Limits{Timeout: 200 * time.Millisecond}},
		{Agent: "spends", Prompt: "go", Limits: host.Limits{MaxCost: 1}},
		{Agent: "absent", Prompt: "go"},
	} {
		run, err := h.Start(ctx, spec)
		if err == nil {
			_, err = run.Wait(ctx)
		}
		switch {
		case errors.Is(err, pluginapi.CodeTimeout):
			fmt.Fprintln(w, "too slow")
		case errors.Is(err, pluginapi.CodeBudgetExceeded):
			fmt.Fprintln(w, "too expensive")
		case err != nil:
			fmt.Fprintln(w, pluginapi.AsError(err).Code)
		}
	}
	return nil
}

// many starts more runs than may go on at a time: the host, made with
// host.Options{MaxRuns: 2}, queues the rest.
func many(ctx context.Context, h *host.Host, w io.Writer) error {
	var runs []*host.Run
	for i := range 5 {
		run, err := h.Start(ctx, host.RunSpec{Agent: "claude", Prompt: fmt.Sprint("task ", i)})
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		result, err := run.Wait(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, result.Text)
	}
	return nil
}

// changed prints what a run changed in the git work tree dir, without the agent's help.
func changed(ctx context.Context, h *host.Host, dir string, w io.Writer) error {
	run, err := h.Start(ctx, host.RunSpec{Agent: "writes", Prompt: "go", Workspace: host.Workspace{Cwd: dir, Changes: true}})
	if err != nil {
		return err
	}
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	diff, err := run.Changes().Diff(ctx)
	if err != nil {
		return err
	}
	defer diff.Close()
	files, err := diff.Files(ctx)
	for _, f := range files {
		fmt.Fprintf(w, "%s %s +%d -%d\n", f.Status, f.Path, f.Added, f.Deleted)
	}
	return err
}

// sessions lists what an agent has in its own store, and goes on with the newest.
func sessions(ctx context.Context, h *host.Host, w io.Writer) error {
	list, err := h.Sessions(ctx, host.SessionQuery{Agent: "claude", Limit: 1})
	if err != nil {
		return err
	}
	for _, s := range list {
		run, err := h.Start(ctx, host.RunSpec{Agent: "claude", Prompt: "go on", AgentSession: host.AgentSession{Resume: s.ID}})
		if err != nil {
			return err
		}
		result, err := run.Wait(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, s.Title, result.End.SessionID == s.ID)
	}
	return nil
}

// answer asks for JSON of a given form. An answer of another form fails the run.
func answer(ctx context.Context, h *host.Host, w io.Writer) error {
	run, err := h.Start(ctx, host.RunSpec{
		Agent: "counts", Prompt: "how many?",
		JSONSchema: `{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}`,
	})
	if err != nil {
		return err
	}
	result, err := run.Wait(ctx)
	fmt.Fprintln(w, result.Text)
	return err
}

// readme is the program of README.md.
func readme(ctx context.Context) error {
	h, err := host.New(host.Options{}) // finds the installed amux
	if err != nil {
		return err
	}
	defer h.Close(ctx)
	run, err := h.Start(ctx, host.RunSpec{Agent: "claude", Prompt: "hello"})
	if err != nil {
		return err
	}
	for event, err := range run.Events(ctx, 1) {
		if err != nil {
			return err
		}
		if text, ok := event.Payload().(pluginapi.TextDelta); ok {
			fmt.Print(text.Delta)
		}
	}
	result, err := run.Wait(ctx)
	fmt.Println(result.State)
	return err
}

var _ = readme // it needs an installed agent: that it compiles is enough

// ---- the tests of them ----

func machine(t *testing.T) *hosttest.Machine {
	echo := func(a *hosttest.Agent) {
		for {
			prompt, ok := a.Prompt()
			if !ok {
				return
			}
			a.Say("you said ", prompt)
		}
	}
	return hosttest.NewMachine(t, map[string]hosttest.Script{
		"claude": echo,
		"asks": func(a *hosttest.Agent) {
			a.Prompt()
			a.Say(fmt.Sprint(a.AskShell("make test"), " ", a.AskShell("rm -rf build")))
		},
		"slow":  func(a *hosttest.Agent) { a.Prompt(); a.Sleep(200 * time.Millisecond); a.Say("built") },
		"hangs": func(a *hosttest.Agent) { a.Prompt(); a.Sleep(time.Hour) },
		"spends": func(a *hosttest.Agent) {
			a.Prompt()
			a.Spend(1, 1, 2)
			a.Interrupted() // by the host, whose limit this is
		},
		"writes": func(a *hosttest.Agent) {
			a.Prompt()
			if err := os.WriteFile(filepath.Join(a.Cwd(), "new.txt"), []byte("a\nb\n"), 0o600); err != nil {
				t.Error(err)
			}
		},
		"counts": func(a *hosttest.Agent) { a.Prompt(); a.Say(`{"n": 3}`) },
	})
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		example func(ctx context.Context, h *host.Host, w io.Writer) error
		options host.Options
		want    string
	}{
		"stream":   {stream, host.Options{}, "you said hello\ncompleted after 1 turn\n"},
		"approve":  {approve, host.Options{}, "true false\n"},
		"converse": {converse, host.Options{}, "you said first\nyou said second\n"},
		"limits":   {limits, host.Options{}, "too slow\ntoo expensive\nAGENT_NOT_FOUND\n"},
		"many":     {many, host.Options{MaxRuns: 2}, "you said task 0\nyou said task 1\nyou said task 2\nyou said task 3\nyou said task 4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, c.want, func(w io.Writer) error { return c.example(t.Context(), machine(t).Host(c.options), w) })
		})
	}
}

// The program of README.md is the one that is compiled here.
func TestReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	source, err := os.ReadFile("examples_test.go")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	indented := strings.ReplaceAll("\t"+strings.TrimSuffix(program, "\n"), "\n", "\n\t") + "\n"
	if !strings.Contains(string(source), "error {\n"+indented) {
		t.Errorf("examples_test.go has no function with\n%s", indented)
	}
}

func check(t *testing.T, want string, example func(w io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := example(&got); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Error(d)
	}
}

func TestDetach(t *testing.T) {
	t.Parallel()
	m := machine(t)
	check(t, "true built\n", func(w io.Writer) error { return detach(t.Context(), m.Host(host.Options{}), m.Host(host.Options{}), w) })
}

func TestChanged(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: apt install git")
	}
	m := machine(t)
	if out, err := exec.Command("git", "init", "-q", m.Cwd()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check(t, "added new.txt +2 -0\n", func(w io.Writer) error { return changed(t.Context(), m.Host(host.Options{}), m.Cwd(), w) })
}

func TestSessions(t *testing.T) {
	t.Parallel()
	h := machine(t).Host(host.Options{})
	check(t, "you said hello\ncompleted after 1 turn\nhello true\n", func(w io.Writer) error {
		return errors.Join(stream(t.Context(), h, w), sessions(t.Context(), h, w))
	})
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // for amux-schema, which an installation has beside amux-shim
	if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/amux-schema").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h := machine(t).Host(host.Options{ShimPath: filepath.Join(dir, "amux-shim")})
	check(t, "{\"n\": 3}\n", func(w io.Writer) error { return answer(t.Context(), h, w) })
}

// A host that limits runs keeps to it.
func TestManyAreQueued(t *testing.T) {
	t.Parallel()
	h := machine(t).Host(host.Options{MaxRuns: 1})
	first, err := h.Start(t.Context(), host.RunSpec{Agent: "hangs", Prompt: "go"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.Start(t.Context(), host.RunSpec{Agent: "claude", Prompt: "go"})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range second.Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.Payload().(type) {
		case pluginapi.RunState:
			if e.To == code.StateQueued {
				err = first.Stop(t.Context())
			} else if e.To == code.StateStarting && first.Info().End == nil {
				t.Error("the second starts while the first goes on")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if result, err := second.Wait(t.Context()); err != nil {
		t.Error(result.State, err)
	}
}
