package hosttest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/hosttest"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// start starts a run of the agent of New.
func start(t *testing.T, h *host.Host, spec host.RunSpec) *host.Run {
	t.Helper()
	if spec.Agent == "" {
		spec.Agent = hosttest.Name
	}
	run, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// types are the types of the run's events, until it has ended.
func types(t *testing.T, run *host.Run) string {
	t.Helper()
	var all []string
	for event, err := range run.Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(event.Type))
	}
	return strings.Join(all, " ")
}

func TestScriptAnswersAPrompt(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, func(a *hosttest.Agent) {
		prompt, _ := a.Prompt()
		a.Say("you said ", prompt)
		a.Spend(10, 5, 0.25)
	})
	run := start(t, h, host.RunSpec{Prompt: "hi"})
	result, err := run.Wait(t.Context())
	if err != nil || result.Text != "you said hi" || result.End.Turns != 1 {
		t.Errorf("%+v, %v", result, err)
	}
	want := "turn_start message_start text_delta text_delta message_stop token_usage cost turn_end"
	if got := types(t, run); !strings.Contains(got, want) || !strings.HasSuffix(got, "run_end") {
		t.Errorf("%s, want like %s", got, want)
	}
}

func TestAnswersReachTheScript(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, func(a *hosttest.Agent) {
		a.Prompt()
		first, second := a.AskShell("make test"), a.AskShell("rm -rf /")
		name, ok := a.Question("Which name?")
		if !first || second || !ok || name != "amux" {
			t.Errorf("%v, %v, %q, %v", first, second, name, ok)
		}
	})
	run := start(t, h, host.RunSpec{Prompt: "go", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	for event, err := range run.Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.Payload().(type) {
		case pluginapi.ApprovalRequest:
			if strings.HasPrefix(e.Detail, "rm") {
				err = run.Deny(t.Context(), e.InteractionID, "no")
			} else {
				err = run.Approve(t.Context(), e.InteractionID, nil)
			}
		case pluginapi.InputRequired:
			err = run.Answer(t.Context(), e.InteractionID, "amux")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEndsOfScripts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script hosttest.Script
		state  string
		err    error
	}{
		"returns":             {func(a *hosttest.Agent) {}, code.StateCompleted, nil},
		"fails":               {func(a *hosttest.Agent) { a.Prompt(); a.Fail(pluginapi.CodeRateLimited, "slow down") }, code.StateFailed, pluginapi.CodeRateLimited},
		"exits":               {func(a *hosttest.Agent) { a.Prompt(); a.Exit(3) }, code.StateFailed, pluginapi.CodeAgentCrash},
		"crashes":             {func(a *hosttest.Agent) { a.Prompt(); a.Crash() }, code.StateFailed, pluginapi.CodeAgentCrash},
		"prints after exit":   {func(a *hosttest.Agent) { a.Prompt(); defer a.Say("gone"); a.Exit(0) }, code.StateCompleted, nil},
		"a line of 2 MiB":     {func(a *hosttest.Agent) { a.Prompt(); a.Say(strings.Repeat("x", 2<<20)) }, code.StateCompleted, nil},
		"hangs to its limit":  {func(a *hosttest.Agent) { a.Prompt(); a.Sleep(time.Hour) }, code.StateTimedOut, pluginapi.CodeTimeout},
		"waits for no prompt": {func(a *hosttest.Agent) { a.Prompt(); a.Prompt() }, code.StateCompleted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := start(t, hosttest.New(t, c.script), host.RunSpec{Prompt: "go", Limits: host.Limits{Timeout: limit(name), Grace: 10 * time.Millisecond}})
			if result, err := run.Wait(t.Context()); result.State != c.state || !errors.Is(err, c.err) {
				t.Errorf("%s, %v; want %s, %v", result.State, err, c.state, c.err)
			}
		})
	}
}

func limit(name string) time.Duration {
	if strings.HasPrefix(name, "hangs") {
		return 100 * time.Millisecond
	}
	return time.Minute
}

func TestConversationStopPauseAndRetry(t *testing.T) {
	t.Parallel()
	spawns := 0
	m := hosttest.NewMachine(t, map[string]hosttest.Script{
		"talks": func(a *hosttest.Agent) {
			for {
				prompt, ok := a.Prompt()
				if !ok {
					return
				}
				a.Say("re: " + prompt)
			}
		},
		"sleeps": func(a *hosttest.Agent) { a.Prompt(); a.Sleep(time.Hour) },
		"recovers": func(a *hosttest.Agent) {
			a.Prompt()
			if spawns++; spawns == 1 {
				a.Fail(pluginapi.CodeOverloaded, "busy")
			}
			a.Say("back")
		},
		"writes": func(a *hosttest.Agent) {
			a.Prompt()
			if err := os.WriteFile(filepath.Join(a.Cwd(), "new.txt"), []byte(a.Getenv("WORD")), 0o600); err != nil {
				t.Error(err)
			}
		},
	})
	h := m.Host(host.Options{})
	talk := start(t, h, host.RunSpec{Agent: "talks", Prompt: "one", Conversation: true})
	if err := errors.Join(talk.Send(t.Context(), "two"), talk.End(t.Context())); err != nil {
		t.Fatal(err)
	}
	if result, err := talk.Wait(t.Context()); err != nil || result.Text != "re: two" || result.End.Turns != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	sleeping := start(t, h, host.RunSpec{Agent: "sleeps", Prompt: "go"})
	if err := errors.Join(sleeping.Pause(t.Context()), sleeping.Resume(t.Context()), sleeping.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if result, err := sleeping.Wait(t.Context()); result.State != code.StateCanceled {
		t.Errorf("%s, %v", result.State, err)
	}
	again := start(t, h, host.RunSpec{Agent: "recovers", Prompt: "go", Retry: &host.Retry{MaxAttempts: 3, BaseDelay: time.Millisecond}})
	if result, err := again.Wait(t.Context()); err != nil || result.Text != "back" || spawns != 2 {
		t.Errorf("%+v, %v, %d spawns", result, err, spawns)
	}
	writes := start(t, h, host.RunSpec{Agent: "writes", Prompt: "go", Workspace: host.Workspace{Cwd: m.Cwd(), Env: map[string]string{"WORD": "hello"}}})
	if _, err := writes.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(m.Cwd(), "new.txt")); string(data) != "hello" {
		t.Errorf("%q, %v", data, err)
	}
}

// A detached run outlives its host, and another host of the machine takes it up.
func TestDetachedRunOutlivesItsHost(t *testing.T) {
	t.Parallel()
	m := hosttest.NewMachine(t, map[string]hosttest.Script{"asks": func(a *hosttest.Agent) {
		a.Prompt()
		if a.AskShell("make") {
			a.Say("made")
		}
	}})
	first := m.Host(host.Options{})
	run := start(t, first, host.RunSpec{Agent: "asks", Prompt: "go", Detached: true, Permissions: host.Permissions{Approve: host.ApproveAsk}})
	for event, err := range run.Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == code.EventApprovalRequest {
			break
		}
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	adopted, err := m.Host(host.Options{}).Adopt(t.Context())
	if err != nil || len(adopted) != 1 || adopted[0].ID() != run.ID() {
		t.Fatalf("%v, %v", adopted, err)
	}
	for event, err := range adopted[0].Events(t.Context(), 1) {
		if ask, ok := event.Payload().(pluginapi.ApprovalRequest); ok {
			err = adopted[0].Approve(t.Context(), ask.InteractionID, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if result, err := adopted[0].Wait(t.Context()); err != nil || result.Text != "made" {
		t.Errorf("%+v, %v", result, err)
	}
}

// In a bubble of testing/synctest an hour takes no time.
func TestHourOfSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hosttest.New(t, func(a *hosttest.Agent) { a.Prompt(); a.Sleep(24 * time.Hour) })
		began := time.Now()
		run := start(t, h, host.RunSpec{Prompt: "go", Limits: host.Limits{IdleTimeout: time.Hour}})
		if result, err := run.Wait(t.Context()); result.State != code.StateTimedOut || !errors.Is(err, pluginapi.CodeInactivityTimeout) {
			t.Errorf("%s, %v", result.State, err)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("it took %s of virtual time", took)
		}
	})
}

// A conversation that begins without a prompt is known by the first that it gets.
func TestFirstPromptIsTheRuns(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, func(a *hosttest.Agent) {
		for {
			if _, ok := a.Prompt(); !ok {
				return
			}
		}
	})
	run := start(t, h, host.RunSpec{Conversation: true})
	if got := run.Info().Prompt; got != "" {
		t.Errorf("before the first prompt it is %q", got)
	}
	for _, prompt := range []string{"first", "second"} {
		if err := run.Send(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs, err := h.Runs(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Prompt != "first" {
		t.Errorf("%+v, %v", runs, err)
	}
}
