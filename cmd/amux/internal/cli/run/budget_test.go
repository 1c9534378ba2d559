package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
)

// A run has a part in the budgets that name it, each with its span of time; a flag takes
// the place of the run's own.
func TestApplyBudgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)
	day, month := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	set := []settings.Budget{
		{Kind: "run", Cost: 2, Tokens: 7}, {Kind: "day", Cost: 20}, {Kind: "tag", Of: "nightly", Per: "month", Tokens: 9},
		{Kind: "tag", Of: "ci", Per: "total", Cost: 3}, {Kind: "tag", Of: "other", Per: "day", Cost: 3},
	}
	want := []host.Budget{
		{Name: "of the day", Since: day, Cost: 20, Hint: "raise [budgets.day] of config.toml, or wait for tomorrow"},
		{Name: "of the tag nightly", Tag: "nightly", Since: month, Tokens: 9, Hint: "raise [budgets.tags.nightly] of config.toml, or wait for the next month"},
		{Name: "of the tag ci", Tag: "ci", Cost: 3, Hint: "raise [budgets.tags.ci] of config.toml"},
	}
	for _, flag := range []float64{0, 5} {
		r := &request{
			Options:  &Options{Now: func() time.Time { return now }, Limits: Limits{MaxCost: flag}},
			settings: settings.Settings{Budgets: set}, spec: host.RunSpec{Tags: []string{"ci", "nightly"}, Limits: host.Limits{MaxCost: flag}},
		}
		r.applyBudgets()
		if diff := cmp.Diff(want, r.spec.Budgets); diff != "" {
			t.Error(diff)
		}
		limits := host.Limits{MaxCost: 2, MaxTokens: 7}
		if flag > 0 {
			limits = host.Limits{MaxCost: flag}
		}
		if r.spec.Limits != limits {
			t.Errorf("%+v", r.spec.Limits)
		}
	}
}
