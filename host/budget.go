package host

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Budget is what several runs may spend together: those that ended at Since or later and
// those that go on, if they have Tag and Project, where these are set. A run is refused when
// it is spent, and ends when it is spent while the run goes on.
type Budget struct {
	Name    string    `json:"name"` // for people, such as "of today"
	Hint    string    `json:"hint,omitempty"`
	Tag     string    `json:"tag,omitempty"`
	Project string    `json:"project,omitempty"` // absolute
	Since   time.Time `json:"since"`             // zero: all runs
	Cost    float64   `json:"cost_usd,omitempty"`
	Tokens  int64     `json:"tokens,omitempty"`
	// Spent is what other runs had spent when this one was started. Start sets it.
	Spent Spent `json:"spent"`
}

// Spent is an amount of money, as far as agents said it, and of tokens.
type Spent struct {
	Cost   float64 `json:"cost_usd"`
	Tokens int64   `json:"tokens"`
}

// ReasonBudget is the reason for which a run has ended whose budget was spent.
const ReasonBudget = engine.ReasonBudget

func (s *RunSpec) validateBudgets() error {
	if math.IsNaN(s.MaxBudget) || math.IsInf(s.MaxBudget, 0) {
		return invalid("max budget %v is not an amount of money", s.MaxBudget).WithHint("give a number of dollars, such as 2.50")
	}
	if math.IsNaN(s.MaxCost) || math.IsInf(s.MaxCost, 0) || s.MaxCost < 0 {
		return invalid("max cost %v is not an amount of money", s.MaxCost).WithHint("give a number of dollars, such as --max-cost 2.50")
	}
	if s.MaxTokens < 0 {
		return invalid("max tokens cannot be negative")
	}
	for _, b := range s.Budgets {
		if math.IsNaN(b.Cost) || math.IsInf(b.Cost, 0) || b.Cost < 0 || b.Tokens < 0 {
			return invalid("the budget %s has %v dollars and %d tokens", b.Name, b.Cost, b.Tokens)
		}
	}
	return nil
}

// checkReports refuses a budget in a currency that the agent does not report.
func (s *RunSpec) checkReports(agent *pluginapi.Agent) error {
	money, tokens := slices.Contains(agent.GetEventTypes(), code.EventCost), slices.Contains(agent.GetEventTypes(), code.EventTokenUsage)
	check := func(name string, cost float64, most int64) error {
		switch {
		case cost > 0 && !money && tokens:
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s does not say what it costs, so the budget %s cannot be kept", agent.Id, name).
				WithHint("limit its tokens instead, with --max-tokens or tokens in [budgets]")
		case cost > 0 && !money || most > 0 && !tokens:
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s does not say what it uses, so the budget %s cannot be kept", agent.Id, name).
				WithHint("limit its time instead, with --timeout")
		}
		return nil
	}
	if err := check("of this run", s.MaxCost, s.MaxTokens); err != nil {
		return err
	}
	for _, b := range s.Budgets {
		if err := check(b.Name, b.Cost, b.Tokens); err != nil {
			return err
		}
	}
	return nil
}

// agentBudget is the limit of money that the agent itself is given. It knows what it has
// spent before amux does.
func (s *RunSpec) agentBudget(agent *pluginapi.Agent) float64 {
	least := s.MaxBudget
	if !agent.GetCapabilities().GetMaxBudget() {
		return least
	}
	lower := func(usd float64) {
		if least == 0 || usd < least {
			least = usd
		}
	}
	if s.MaxCost > 0 {
		lower(s.MaxCost)
	}
	for _, b := range s.Budgets {
		if b.Cost > b.Spent.Cost {
			lower(b.Cost - b.Spent.Cost)
		}
	}
	return least
}

// checkSpent notes what other runs have spent of the budgets, and refuses a run where
// nothing is left.
func (s *RunSpec) checkSpent(ctx context.Context, runs *archive.Archive) error {
	if len(s.Budgets) == 0 {
		return nil
	}
	s.Budgets = slices.Clone(s.Budgets)
	spent, err := spentOf(ctx, runs, s.Budgets, "")
	if err != nil {
		return err
	}
	for i := range s.Budgets {
		b := &s.Budgets[i]
		b.Spent = spent[i]
		if msg := b.spent(b.Spent); msg != "" {
			return pluginapi.Errorf(pluginapi.CodeBudgetExceeded, "%s", msg).WithHint("%s", b.Hint)
		}
	}
	return nil
}

// spentOf is what all runs but one have spent of each budget.
func spentOf(ctx context.Context, runs *archive.Archive, budgets []Budget, but string) ([]Spent, error) {
	spent := make([]Spent, len(budgets))
	since := budgets[0].Since
	for _, b := range budgets {
		if b.Since.Before(since) {
			since = b.Since
		}
	}
	_, err := runs.Entries(ctx, since, func(e *archive.Entry) {
		if e.RunID == but {
			return
		}
		for i, b := range budgets {
			if b.counts(e) {
				spent[i].add(e)
			}
		}
	})
	return spent, err
}

// counts reports whether a run is one of the budget's.
func (b *Budget) counts(e *archive.Entry) bool {
	return (b.Tag == "" || slices.Contains(e.Tags, b.Tag)) && (b.Project == "" || e.Project == b.Project) &&
		(e.Ended.IsZero() || !e.Ended.Before(b.Since))
}

func (s *Spent) add(e *archive.Entry) {
	if e.Cost != nil {
		s.Cost += e.Cost.USD
	}
	for _, figure := range []*int64{e.Tokens.Input, e.Tokens.Output, e.Tokens.CacheRead, e.Tokens.CacheWrite} {
		if figure != nil {
			s.Tokens += *figure
		}
	}
}

// spent says that a budget is spent; "" if it is not.
func (b *Budget) spent(s Spent) string {
	switch {
	case b.Cost > 0 && s.Cost >= b.Cost:
		return fmt.Sprintf("the budget %s is spent: $%s of $%s", b.Name, usd(s.Cost), usd(b.Cost))
	case b.Tokens > 0 && s.Tokens >= b.Tokens:
		return fmt.Sprintf("the budget %s is spent: %d of %d tokens", b.Name, s.Tokens, b.Tokens)
	}
	return ""
}

// usd writes dollars with as many digits as are needed to tell them apart from less.
func usd(amount float64) string {
	if amount >= 0.01 {
		return strconv.FormatFloat(amount, 'f', 2, 64)
	}
	return strconv.FormatFloat(amount, 'g', 3, 64)
}

// budgets are those of a run that goes on, and what other runs have spent of them.
type budgets struct {
	runs *archive.Archive
	run  string
	list []Budget // the first is the run's own

	mu     sync.Mutex
	spent  []Spent // by others
	looked time.Time
}

// lookEvery is how often a run looks at what others have spent, at most.
const lookEvery = 5 * time.Second

// newBudgets returns nil if the run has none.
func newBudgets(runs *archive.Archive, run string, spec *RunSpec) *budgets {
	if spec.MaxCost == 0 && spec.MaxTokens == 0 && len(spec.Budgets) == 0 {
		return nil
	}
	own := Budget{Name: "of this run", Hint: "raise --max-cost or --max-tokens, or [budgets.run] in config.toml", Cost: spec.MaxCost, Tokens: spec.MaxTokens}
	b := &budgets{runs: runs, run: run, list: append([]Budget{own}, spec.Budgets...), looked: time.Now()}
	for _, budget := range b.list {
		b.spent = append(b.spent, budget.Spent)
	}
	return b
}

// overspent is the function of engine.Policy; nil if there is no budget.
func (b *budgets) overspent() func(cost *pluginapi.Money, tokens int64) (msg, hint string) {
	if b == nil {
		return nil
	}
	return func(cost *pluginapi.Money, tokens int64) (msg, hint string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i := range b.list {
			all := b.spent[i]
			all.Tokens += tokens
			if cost != nil {
				all.Cost += cost.USD
			}
			if msg := b.list[i].spent(all); msg != "" {
				return msg, b.list[i].Hint
			}
		}
		return "", ""
	}
}

// look sees what others have spent meanwhile, if it has not a moment ago.
func (b *budgets) look() {
	if b == nil || len(b.list) < 2 || time.Since(b.looked) < lookEvery {
		return
	}
	b.looked = time.Now()
	spent, err := spentOf(context.Background(), b.runs, b.list[1:], b.run)
	if err != nil {
		b.runs.Log.Named("run").Debug("what other runs have spent is not known", "run_id", b.run, "error", err)
		return
	}
	b.mu.Lock()
	copy(b.spent[1:], spent)
	b.mu.Unlock()
}
