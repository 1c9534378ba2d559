package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// row is a line of docs/performance.md.
type row struct {
	name  string
	unit  string
	limit float64 // budget
	times float64 // the budget is this many floors, where that is more
	least bool    // more is better; then limit and times must both be met
	extra float64 // the budget is this much more than the floor
}

// rows is the whole list, in the order in which it is printed.
var rows = []row{
	{name: "amux --help", unit: "ms", limit: 8},
	{name: "amux version", unit: "ms", limit: 8},
	{name: "amux agents list, warm", unit: "ms", limit: 20},
	{name: "amux agents list, 100 plugins", unit: "ms", limit: 100},
	{name: "launch → agent's main", unit: "ms", extra: 25},
	{name: "plugin verified by receipt", unit: "ms", limit: 1},
	{name: "throughput, 261-byte deltas", unit: "lines/s", limit: 250_000, times: 0.35, least: true},
	{name: "CPU for 200,000 lines", unit: "s", limit: 0.8},
	{name: "latency at 1,000 lines/s, p50", unit: "µs", limit: 350, times: 6},
	{name: "latency at 1,000 lines/s, p99", unit: "µs", limit: 1500},
	{name: "latency at 10,000 lines/s, p50", unit: "µs", limit: 250},
	{name: "latency at 10,000 lines/s, p99", unit: "µs", limit: 2000},
	{name: "memory of a run: host + plugin + shim", unit: "MB", limit: 45},
	{name: "  host", unit: "MB"},
	{name: "  plugin", unit: "MB"},
	{name: "  shim", unit: "MB", limit: 3},
	{name: "  shim's threads", unit: "", limit: 6},
	{name: "a further idle run, fresh: host + plugin", unit: "KB", limit: 100},
	{name: "a further idle run, after traffic", unit: "KB", limit: 250},
	{name: "a shim among 50", unit: "MB", limit: 3},
	{name: "200 runs in one host: start, each", unit: "ms", limit: 8},
	{name: "200 runs in one host: stop, all", unit: "ms", limit: 250},
	{name: "100 runs at 100 lines/s, p99", unit: "ms", limit: 10},
	{name: "one flood among 10: the others' p50", unit: "ms", extra: 2},
	{name: "plugin killed at 50,000 lines → next event", unit: "ms", limit: 200},
	{name: "a 64 MiB line: host peak, more", unit: "MB", limit: 40},
	{name: "a 64 MiB line: plugin peak", unit: "MB", limit: 256},
	{name: "a 64 MiB line: kept afterwards", unit: "MB", limit: 32},
	{name: "consumer stalled for 8 s: lines lost", unit: "", limit: 0},
	{name: "consumer stalled for 8 s: host grows by", unit: "MB", limit: 16},
	{name: "host killed → shim, agent, tree gone", unit: "ms", limit: 50},
}

// table gathers samples.
type table struct {
	floors, measured map[string][]float64
}

func newTable() *table {
	return &table{map[string][]float64{}, map[string][]float64{}}
}

// add puts in a sample; a floor of NaN is none.
func (t *table) add(name string, floor, measured float64) {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
		panic("no row " + name)
	}
	if !math.IsNaN(floor) {
		t.floors[name] = append(t.floors[name], floor)
	}
	t.measured[name] = append(t.measured[name], measured)
}

var none = math.NaN()

// print says whether any row is over its budget by more than a fifth.
func (t *table) print(out io.Writer) (over bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "row\tfloor\tmeasured\tbudget\t\tn\t")
	for _, r := range rows {
		samples := t.measured[r.name]
		if len(samples) == 0 {
			continue
		}
		floor, measured := none, median(samples)
		if f := t.floors[r.name]; len(f) > 0 {
			floor = median(f)
		}
		budget, verdict := r.limit, "ok"
		switch {
		case r.least:
			budget = max(budget, r.times*floor)
			if measured < budget {
				verdict = "over"
			}
			over = over || measured < budget/1.2
		case r.limit == 0 && r.extra == 0 && r.times == 0 && r.unit != "":
			verdict = "" // told, not promised
		default:
			if r.times > 0 {
				budget = max(budget, r.times*floor)
			}
			if r.extra > 0 {
				budget = floor + r.extra
			}
			if measured > budget {
				verdict = "over"
			}
			over = over || measured > 1.2*budget
		}
		budgetText := text(budget)
		if verdict == "" {
			budgetText = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s %s\t%s\t%s\t%d\t\n", r.name, text(floor), text(measured), r.unit, budgetText, verdict, len(samples))
	}
	w.Flush()
	return over
}

func text(f float64) string {
	switch {
	case math.IsNaN(f):
		return ""
	case f >= 10_000:
		return strconv.Itoa(int(math.Round(f/1000))) + ",000"
	case f >= 100:
		return strconv.Itoa(int(math.Round(f)))
	case f == math.Trunc(f):
		return strconv.Itoa(int(f))
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

func median(samples []float64) float64 { return quantile(samples, 0.5) }

// quantile is the sample at or above which the rest of them lie.
func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(samples))
	if q == 0.5 && len(sorted)%2 == 0 {
		return (sorted[len(sorted)/2-1] + sorted[len(sorted)/2]) / 2
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
