// Package compare puts the results of runs side by side.
package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Row is what became of a run. What is not known is null.
type Row struct {
	RunID      string            `json:"run_id"`
	Agent      string            `json:"agent"`
	Model      string            `json:"model,omitempty"`
	Worktree   string            `json:"worktree,omitempty"`
	State      string            `json:"state"`
	Reason     string            `json:"reason,omitempty"`
	DurationMS *int64            `json:"duration_ms"`
	Turns      *int              `json:"turns"`
	Tokens     *pluginapi.Tokens `json:"tokens"`
	CostUSD    *float64          `json:"cost_usd"`
	Changes    *host.ChangesInfo `json:"changes"`
	Check      *host.Check       `json:"check"`
}

// Of is the row of a run.
func Of(run app.Recorded) Row {
	info := run.Info()
	row := Row{RunID: info.ID, Agent: info.Agent, Model: info.Spec.Model, State: info.State, Reason: info.Reason}
	if info.Spec.Worktree != nil {
		row.Worktree = info.Spec.Worktree.Name
	}
	if end := info.End; end != nil {
		row.DurationMS, row.Turns, row.Tokens = &end.DurationMS, &end.Turns, &end.Tokens
		if end.Cost != nil {
			row.CostUSD = &end.Cost.USD
		}
		if changes := run.Changes().Info(); changes != nil && changes.EndTree != "" {
			row.Changes = changes
		}
	}
	return row
}

// Table has a line per run, and a column for what one of them has.
func Table(rows []Row) [][]string {
	has := func(f func(Row) bool) bool { return slices.ContainsFunc(rows, f) }
	columns := []struct {
		head string
		show bool
		cell func(Row) string
	}{
		{"RUN", true, func(r Row) string { return render.ShortID(r.RunID) }},
		{"AGENT", true, func(r Row) string { return r.Agent }},
		{"MODEL", has(func(r Row) bool { return r.Model != "" }), func(r Row) string { return r.Model }},
		{"WORKTREE", has(func(r Row) bool { return r.Worktree != "" }), func(r Row) string { return r.Worktree }},
		{"STATE", true, func(r Row) string { return strings.ReplaceAll(r.State, "_", " ") }},
		{"TIME", true, func(r Row) string {
			if r.DurationMS == nil {
				return ""
			}
			return render.Duration(time.Duration(*r.DurationMS) * time.Millisecond)
		}},
		{"TOKENS", has(func(r Row) bool { return r.tokens() > 0 }), func(r Row) string {
			if r.tokens() == 0 {
				return ""
			}
			return render.Number(r.tokens())
		}},
		{"COST", has(func(r Row) bool { return r.CostUSD != nil }), func(r Row) string {
			if r.CostUSD == nil {
				return ""
			}
			return render.Money(*r.CostUSD)
		}},
		{"CHANGED", true, func(r Row) string {
			if r.Changes == nil {
				return ""
			}
			return render.Changed(r.Changes.Files, r.Changes.Added, r.Changes.Deleted)
		}},
		{"CHECK", has(func(r Row) bool { return r.Check != nil }), func(r Row) string { return Verdict(r.Check) }},
	}
	table := make([][]string, len(rows)+1)
	for _, c := range columns {
		if !c.show {
			continue
		}
		table[0] = append(table[0], c.head)
		for i, r := range rows {
			table[i+1] = append(table[i+1], render.Dash(c.cell(r)))
		}
	}
	return table
}

func (r Row) tokens() (sum int64) {
	if r.Tokens == nil {
		return 0
	}
	for _, n := range []*int64{r.Tokens.Input, r.Tokens.Output, r.Tokens.CacheRead, r.Tokens.CacheWrite} {
		if n != nil {
			sum += *n
		}
	}
	return sum
}

// Verdict says in a word what a check found; empty if there was none.
func Verdict(c *host.Check) string {
	switch {
	case c == nil:
		return ""
	case c.TimedOut:
		return "too long"
	case c.ExitCode == 0:
		return "ok"
	}
	return fmt.Sprintf("exit %d", c.ExitCode)
}
