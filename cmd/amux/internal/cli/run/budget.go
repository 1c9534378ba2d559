package run

import (
	"slices"
	"time"

	"github.com/amux-dev/amux/host"
)

// applyBudgets takes the budgets of config.toml that the run has a part in. The run's own
// is for what no flag limits.
func (r *request) applyBudgets() {
	spec, now := &r.spec, r.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for _, set := range r.settings.Budgets {
		shared := host.Budget{Since: midnight, Cost: set.Cost, Tokens: set.Tokens}
		const way = " of config.toml, or wait for "
		switch set.Per {
		case "month":
			shared.Since = midnight.AddDate(0, 0, 1-now.Day())
			shared.Hint = "the next month"
		case "total":
			shared.Since = time.Time{}
		default:
			shared.Hint = "tomorrow"
		}
		table := "[budgets." + set.Kind + "]"
		switch set.Kind {
		case "run":
			if spec.MaxCost == 0 && spec.MaxTokens == 0 {
				spec.MaxCost, spec.MaxTokens = set.Cost, set.Tokens
			}
			continue
		case "day":
			shared.Name = "of the day"
		case "tag":
			if !slices.Contains(spec.Tags, set.Of) {
				continue
			}
			table = "[budgets.tags." + set.Of + "]"
			shared.Name, shared.Tag = "of the tag "+set.Of, set.Of
		case "project":
			if dir, err := r.Config.Dir(); err != nil || r.Project.Dir(dir) != set.Of {
				continue
			}
			table = "[budgets.projects]"
			shared.Name, shared.Project = "of the project "+set.Of, set.Of
		}
		if shared.Hint == "" {
			shared.Hint = "raise " + table + " of config.toml"
		} else {
			shared.Hint = "raise " + table + way + shared.Hint
		}
		spec.Budgets = append(spec.Budgets, shared)
	}
}
