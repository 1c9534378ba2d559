//go:build linux

package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// A run whose budget is spent ends, and says so: in the middle of a turn, behind one of a
// conversation, and after an error that would else be tried again. One that has finished
// its work has finished. A replay tells the same.
func TestBudgetEndsTheRun(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	tokens, money := host.Limits{MaxTokens: 500, Grace: time.Second}, host.Limits{MaxCost: 0.0005, Grace: time.Second}
	for name, test := range map[string]struct {
		spec   host.RunSpec
		reason string
		msg    string
	}{
		"tokens":          {host.RunSpec{Prompt: "usage 400 50\nusage 400 50\nsleep 60", Limits: tokens}, "budget", "the budget of this run is spent: 900 of 500 tokens"},
		"money":           {host.RunSpec{Prompt: "usage 450 50\nsleep 60", Limits: money}, "budget", "the budget of this run is spent: $0.0005 of $0.0005"},
		"ignores TERM":    {host.RunSpec{Prompt: "ignore-term\nusage 450 50\nsleep 60", Limits: tokens}, "budget", "500 of 500"},
		"conversation":    {host.RunSpec{Prompt: "usage 450 50", Conversation: true, Limits: tokens}, "budget", "500 of 500"},
		"asks":            {host.RunSpec{Prompt: "usage 450 50\nask this", Permissions: host.Permissions{Approve: host.ApproveAsk}, Limits: tokens}, "budget", "500 of 500"},
		"not reached":     {host.RunSpec{Prompt: "usage 400 50", Limits: tokens}, "completed", ""},
		"both":            {host.RunSpec{Prompt: "usage 400 200\nsleep 60", Limits: host.Limits{MaxTokens: 500, MaxCost: 1}}, "budget", "600 of 500"},
		"no second try":   {host.RunSpec{Prompt: "usage 450 50\ndo fail RATE_LIMITED\nexit 1", Retry: &host.Retry{MaxAttempts: 3}, Limits: tokens}, "", ""},
		"without a limit": {host.RunSpec{Prompt: "usage 400000 50"}, "completed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.spec.Agent = "fake"
			since := time.Now()
			r := s.Start(h, test.spec)
			result, _ := r.Wait(context.Background())
			if took := time.Since(since); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			end := result.End
			if test.reason != "" && end.Reason != test.reason || !strings.Contains(end.Message, test.msg) {
				t.Errorf("%s, %s, %s: %s", end.State, end.Reason, end.Code, end.Message)
			}
			if end.Reason == host.ReasonBudget && (end.Code != pluginapi.CodeBudgetExceeded || end.State != "failed") {
				t.Errorf("%s, %s", end.State, end.Code)
			}
			var live, again bytes.Buffer
			must(t, r.CopyEvents(context.Background(), &live, 1))
			must(t, h.Replay(context.Background(), r.ID(), &again))
			if diff := agents.Difference(again.String(), live.String()); diff != "" {
				t.Errorf("a replay differs: %s", diff)
			}
			if n := strings.Count(live.String(), `"type":"retry"`); n > 0 {
				t.Errorf("it was tried again")
			}
		})
	}
}

// What several runs may spend together is counted when a run starts and while it goes on,
// with what ended runs have spent.
func TestSharedBudgets(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	run := func(prompt string, tags []string, budgets ...host.Budget) host.RunSpec {
		return host.RunSpec{Agent: "fake", Prompt: prompt, Tags: tags, Budgets: budgets}
	}
	day := host.Budget{Name: "of today", Hint: "raise it", Since: time.Now().Add(-time.Hour), Tokens: 1000}
	nightly := host.Budget{Name: "of the tag nightly", Tag: "nightly", Cost: 0.0006}
	s.Start(h, run("usage 500 50", []string{"nightly"}, day, nightly)).Wait(context.Background())
	live := s.Start(h, run("usage 300 0\nwait", nil, day))
	agents.Eventually(t, 20*time.Second, "the usage of the live run is known", func() bool {
		used, err := os.ReadFile(filepath.Join(live.Dir(), "usage.json"))
		return err == nil && bytes.Contains(used, []byte("300"))
	})
	for _, test := range []struct {
		spec host.RunSpec
		want string
	}{
		{run("usage 150 0\nsleep 60", nil, day), "the budget of today is spent: 1000 of 1000 tokens"}, // 850 + 150
		{run("usage 60 0\nsleep 60", []string{"nightly"}, nightly), "the budget of the tag nightly is spent: $0.000"},
		{run("usage 1000 0", []string{"other"}, host.Budget{Name: "x", Tag: "other", Tokens: 1_000_000}), ""},
		{run("usage 1 0", nil, host.Budget{Name: "later", Since: time.Now().Add(time.Hour), Cost: 1}), ""},
	} {
		r := s.Start(h, test.spec)
		if test.want == "" {
			must(t, r.Kill(context.Background()))
			r.Wait(context.Background())
			if outcome, err := h.Delete(context.Background(), r.ID()); err != nil {
				t.Error(outcome, err)
			}
			continue
		}
		end, _ := r.Wait(context.Background())
		if end := end.End; end.Reason != host.ReasonBudget || !strings.Contains(end.Message, test.want) {
			t.Errorf("%s, %s: %s", end.State, end.Reason, end.Message)
		}
	}
	before, _ := os.ReadDir(filepath.Join(s.Options().ConfigDir, "runs"))
	_, err := h.Start(context.Background(), run("usage 1 0", nil, day))
	if !errors.Is(err, pluginapi.CodeBudgetExceeded) || pluginapi.AsError(err).Hint != "raise it" {
		t.Errorf("a run was started although the day's budget is spent: %v", err)
	}
	if after, _ := os.ReadDir(filepath.Join(s.Options().ConfigDir, "runs")); len(after) != len(before) {
		t.Errorf("it left a record")
	}
	must(t, live.Stop(context.Background()))
	live.Wait(context.Background())
}

// A budget goes into the record of the run and comes out of it.
func TestBudgetIsRecorded(t *testing.T) {
	t.Parallel()
	spec := host.RunSpec{Limits: host.Limits{MaxCost: 1.5, MaxTokens: 7}, Budgets: []host.Budget{{Name: "of today", Tokens: 5, Spent: host.Spent{Tokens: 3}}}}
	data, err := json.Marshal(spec)
	must(t, err)
	var again host.RunSpec
	must(t, json.Unmarshal(data, &again))
	if again.MaxCost != 1.5 || again.MaxTokens != 7 || again.Budgets[0].Spent.Tokens != 3 {
		t.Errorf("%s", data)
	}
}
