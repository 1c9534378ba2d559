package records

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// CostOptions are what amux cost needs.
type CostOptions struct {
	Print   *app.Printer
	Process *app.Process
	Host    func() (app.Host, error)
	Now     func() time.Time
	Width   int

	By           string
	Since, Until string
	Selection    app.Selection
	JSON         bool
	Format       string
}

// NewCmdCost makes amux cost.
func NewCmdCost(a *app.App) *cobra.Command {
	o := &CostOptions{Print: a.Print, Process: a.Process, Host: a.Opener.ForRuns, Now: time.Now, Width: a.IO.Width, By: "agent"}
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Add up what runs have cost",
		Long: `Add up tokens and money of all runs, those that go on included, also of runs whose
records were removed. A run belongs to the day on which it ended. Money is what the
agents say, which for most of them is an estimate by list prices; a + marks a sum in
which runs are missing that say no money.

With --by tag a run counts for each of its tags, and once in the total. With --by model a
run that used several models is split by its tokens; its money is in the row "several",
since no agent says which model took it.`,
		Example: `  amux cost
  amux cost --by day --since 7d
  amux cost --by model --tag nightly --since 2026-11-01 --until 2026-12-01
  amux cost --by tag --json | jq '.rows[] | {key, cost_usd}'
  amux cost --by agent --format '{{.Key}} {{.OutputTokens}}'`,
		Args: app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			if elsewhere(a.Process, o.Format) {
				return a.HandOver()
			}
			return cost(o)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(app.OneOf(&o.By, "agent", "model", "day", "tag", "project"), "by", "one row for each agent (default), model, day, tag or project")
	f.StringVar(&o.Since, "since", "", "only runs that ended within this `TIME`: 12h, 7d, or from a date such as 2026-11-20")
	f.StringVar(&o.Until, "until", "", "only runs that ended before this `TIME`, as for --since")
	o.Selection.AddFlags(f)
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	f.StringVar(&o.Format, "format", "", "print each row by this Go `TEMPLATE`, such as '{{.Key}} {{.Runs}}'; the fields are those of --json in Go's spelling")
	return cmd
}

// costRow is what the runs of one key have used.
type costRow struct {
	Key              string   `json:"key"` // "" if the runs have none
	Runs             int      `json:"runs"`
	PricedRuns       int      `json:"priced_runs"` // those whose agent said what they cost
	Turns            int      `json:"turns"`
	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	ThinkingTokens   int64    `json:"thinking_tokens"` // part of the output
	CacheReadTokens  int64    `json:"cache_read_tokens"`
	CacheWriteTokens int64    `json:"cache_write_tokens"`
	CostUSD          *float64 `json:"cost_usd"` // null if no agent said any
}

// Tokens are all of them.
func (r *costRow) Tokens() int64 {
	return r.InputTokens + r.OutputTokens + r.CacheReadTokens + r.CacheWriteTokens
}

func (r *costRow) addTokens(t pluginapi.Tokens) {
	for _, sum := range []struct {
		to   *int64
		more *int64
	}{
		{&r.InputTokens, t.Input}, {&r.OutputTokens, t.Output}, {&r.ThinkingTokens, t.Thinking},
		{&r.CacheReadTokens, t.CacheRead}, {&r.CacheWriteTokens, t.CacheWrite},
	} {
		if sum.more != nil {
			*sum.to += *sum.more
		}
	}
}

func (r *costRow) addMoney(cost *pluginapi.Money) {
	if cost == nil {
		return
	}
	if r.CostUSD == nil {
		r.CostUSD = new(float64)
	}
	*r.CostUSD += cost.USD
	r.PricedRuns++
}

func (r *costRow) addRun(s *host.Spending) {
	r.Runs++
	r.Turns += s.Turns
	r.addTokens(s.Tokens)
	r.addMoney(s.Cost)
}

// severalModels is the key of the money of runs that used several models.
const severalModels = "several"

// costs are the rows so far.
type costs struct {
	by    string
	zone  *time.Location
	today string
	rows  map[string]*costRow
	total costRow
}

func (c *costs) row(key string) *costRow {
	row := c.rows[key]
	if row == nil {
		row = &costRow{Key: key}
		c.rows[key] = row
	}
	return row
}

func (c *costs) add(s *host.Spending) {
	c.total.addRun(s)
	switch c.by {
	case "agent":
		c.row(s.Run.Agent).addRun(s)
	case "project":
		c.row(s.Run.Project).addRun(s)
	case "day":
		day := c.today
		if s.Run.Ended != nil {
			day = s.Run.Ended.In(c.zone).Format(time.DateOnly)
		}
		c.row(day).addRun(s)
	case "tag":
		for _, tag := range s.Run.Tags {
			c.row(tag).addRun(s)
		}
		if len(s.Run.Tags) == 0 {
			c.row("").addRun(s)
		}
	case "model":
		switch len(s.Models) {
		case 0:
			c.row("").addRun(s)
		case 1:
			c.row(s.Models[0].Model).addRun(s)
		default:
			for _, m := range s.Models {
				row := c.row(m.Model)
				row.Runs++
				row.addTokens(m.Tokens)
			}
			if s.Cost != nil {
				row := c.row(severalModels)
				row.Runs++
				row.addMoney(s.Cost)
			}
		}
	}
}

// sorted returns the rows: days in their order, else the dearest first.
func (c *costs) sorted() []costRow {
	rows := make([]costRow, 0, len(c.rows))
	for _, row := range c.rows {
		rows = append(rows, *row)
	}
	usd := func(r costRow) float64 {
		if r.CostUSD == nil {
			return 0
		}
		return *r.CostUSD
	}
	slices.SortFunc(rows, func(a, b costRow) int {
		if c.by == "day" {
			return strings.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(usd(b), usd(a)), cmp.Compare(b.Tokens(), a.Tokens()), strings.Compare(a.Key, b.Key))
	})
	return rows
}

func cost(o *CostOptions) error {
	if o.JSON && o.Format != "" {
		return app.Usagef("--json and --format cannot be combined")
	}
	format, err := parseFormat(o.Process, o.Format, "{{.Key}} {{.Runs}}")
	if err != nil {
		return err
	}
	now := o.Now()
	var since, until time.Time
	if o.Since != "" {
		if since, err = app.ParseWhen("since", o.Since, now); err != nil {
			return err
		}
	}
	if o.Until != "" {
		if until, err = app.ParseWhen("until", o.Until, now); err != nil {
			return err
		}
	}
	for _, filter := range o.Selection.Filters {
		if strings.HasPrefix(filter, "prompt=") {
			return app.Usagef("invalid --filter %q: the index of runs has no prompts", filter).WithHint("select by tag, name or folder; or list runs: amux ps -a --filter prompt=TEXT")
		}
	}
	fits, err := o.Selection.Compile(o.Process)
	if err != nil {
		return err
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	sums := costs{by: o.By, zone: now.Location(), today: now.Format(time.DateOnly), rows: map[string]*costRow{}}
	bad, err := h.Spending(context.Background(), since, func(s *host.Spending) {
		ended := now
		if s.Run.Ended != nil {
			ended = *s.Run.Ended
		}
		if (until.IsZero() || ended.Before(until)) && fits(s.Run) {
			sums.add(s)
		}
	})
	if err != nil {
		return err
	}
	if bad > 0 {
		o.Print.Warnf("%s of run-index.jsonl cannot be read and %s left out", render.Plural(bad, "line"), map[bool]string{true: "is", false: "are"}[bad == 1])
	}
	rows := sums.sorted()
	switch {
	case o.JSON:
		return o.Print.JSON(costJSON{o.By, timeOf(since), timeOf(until), rows, sums.total})
	case format != nil:
		for i := range rows {
			if err := printFormat(o.Print, format, &rows[i], "Key, Runs, PricedRuns, Turns, Tokens, InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens, CostUSD"); err != nil {
				return err
			}
		}
		return nil
	case len(rows) == 0:
		o.Print.Notef("no runs")
		return nil
	}
	o.Print.Table(costTable(o.By, rows, sums.total, o.Width))
	if missing := sums.total.Runs - sums.total.PricedRuns; sums.total.PricedRuns > 0 && missing > 0 {
		o.Print.Notef("+: without the money of %s whose agents said none", render.Plural(missing, "run"))
	}
	return nil
}

// costJSON is what --json prints.
type costJSON struct {
	By    string     `json:"by"`
	Since *time.Time `json:"since"`
	Until *time.Time `json:"until"`
	Rows  []costRow  `json:"rows"`
	Total costRow    `json:"total"`
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Columns of amux cost appear where the terminal is wide enough for them.
const (
	tokensWidth = 70  // input and output instead of their sum
	cacheWidth  = 100 // tokens of the cache
)

// costTable makes a table with a total that fits width.
func costTable(by string, rows []costRow, total costRow, width int) [][]string {
	head := []string{strings.ToUpper(by), "RUNS"}
	switch {
	case width >= cacheWidth:
		head = append(head, "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT")
	case width >= tokensWidth:
		head = append(head, "INPUT", "OUTPUT")
	default:
		head = append(head, "TOKENS")
	}
	table := [][]string{append(head, "COST")}
	line := func(key string, r costRow) {
		money := "-"
		if r.CostUSD != nil {
			money = render.Money(*r.CostUSD)
			if r.PricedRuns < r.Runs {
				money += "+"
			}
		}
		row := []string{key, render.Number(int64(r.Runs))}
		switch {
		case width >= cacheWidth:
			row = append(row, render.Number(r.InputTokens), render.Number(r.CacheReadTokens), render.Number(r.CacheWriteTokens), render.Number(r.OutputTokens))
		case width >= tokensWidth:
			row = append(row, render.Number(r.InputTokens+r.CacheReadTokens+r.CacheWriteTokens), render.Number(r.OutputTokens))
		default:
			row = append(row, render.Number(r.Tokens()))
		}
		table = append(table, append(row, money))
	}
	for _, r := range rows {
		line(render.Excerpt(render.Dash(r.Key), max(12, width/3)), r)
	}
	if len(rows) > 1 {
		line("total", total)
	}
	return table
}
