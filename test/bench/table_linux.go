package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// row is a line of docs/performance.md. Budgets were set on a machine on which an
// empty program starts in reference milliseconds; where one takes longer, budgets
// of time are longer by as much. Where a row is also promised in floors, its budget is so
// many of them, if this is more.
type row struct {
	name  string
	unit  string
	limit float64 // budget; 0: the row is told, not promised
	times float64 // in floors
	extra float64 // more than the floor
	least bool    // more is better; limit and times are both to be met
	none  bool    // the budget is 0
	aim   float64 // what limit or extra is to become; it decides nothing yet
	tenth string  // the row of a tenth of the size: this one costs at most steepest as much
}

// steepest is what ten times as much may cost at most, in times.
const steepest = 12

const reference = 1.2

// rows is the whole list, in the order in which it is printed.
var rows = []row{
	{name: "amux --help", unit: "ms", limit: 8, aim: 5},
	{name: "amux version", unit: "ms", limit: 8, aim: 5},
	{name: "amux agents list, warm", unit: "ms", limit: 20},
	{name: "amux agents list, 10 plugins", unit: "ms"},
	{name: "amux agents list, 100 plugins", unit: "ms", limit: 100, tenth: "amux agents list, 10 plugins"},
	{name: "amux agents list, 1,000 plugins", unit: "ms", tenth: "amux agents list, 100 plugins"},
	{name: "launch → agent's main", unit: "ms", extra: 25, aim: 12},
	{name: "launch → agent's main, 100 plugins", unit: "ms"},
	{name: "plugin verified by receipt", unit: "ms", limit: 1},
	{name: "throughput, 261-byte deltas", unit: "lines/s", limit: 250_000, times: 0.35, least: true},
	{name: "CPU for 200,000 lines", unit: "s", limit: 0.8, times: 6},
	{name: "latency at 1,000 lines/s, p50", unit: "µs", limit: 350, times: 6, aim: 180},
	{name: "latency at 1,000 lines/s, p99", unit: "µs", limit: 1500, times: 12},
	{name: "latency at 10,000 lines/s, p50", unit: "µs", limit: 250, times: 7},
	{name: "latency at 10,000 lines/s, p99", unit: "µs", limit: 2000, times: 16},
	{name: "a run of 2,000 lines, sync = off", unit: "ms"},
	{name: "a run of 2,000 lines, sync = end", unit: "ms"},
	{name: "a run of 2,000 lines, sync = always", unit: "ms"},
	{name: "memory of a run: host + plugin + shim", unit: "MB", limit: 45, aim: 30},
	{name: "  host", unit: "MB", aim: 14},
	{name: "  plugin", unit: "MB", aim: 13},
	{name: "  shim", unit: "MB", limit: 3},
	{name: "  shim's threads", unit: "", limit: 6},
	{name: "a further idle run, fresh: host + plugin", unit: "KB", limit: 100},
	{name: "a further idle run, after traffic", unit: "KB", limit: 250},
	{name: "a shim among 50", unit: "MB", limit: 3},
	{name: "200 runs in one host: start, each", unit: "ms", limit: 8},
	{name: "200 runs in one host: stop, all", unit: "ms", extra: 250},
	{name: "1,000 quiet runs: start, all", unit: "s", limit: 60},
	{name: "1,000 quiet runs: stop, all", unit: "s", limit: 10},
	{name: "1,000 quiet runs: memory of each", unit: "MB", limit: 4.5},
	{name: "1,000 quiet runs: threads of a shim", unit: "", limit: 6},
	{name: "  of the one with the most", unit: "", limit: 6},
	{name: "1,000 quiet runs: processes left", unit: "", none: true},
	{name: "100 runs at 100 lines/s, p99", unit: "ms", limit: 10, times: 10},
	{name: "one flood among 10: the others' p50", unit: "ms", extra: 2},
	{name: "plugin killed at 50,000 lines → next event", unit: "ms", limit: 200},
	{name: "a 0.64 MiB line: on its way", unit: "ms"},
	{name: "a 6.4 MiB line: on its way", unit: "ms", tenth: "a 0.64 MiB line: on its way"},
	{name: "a 64 MiB line: on its way", unit: "ms", tenth: "a 6.4 MiB line: on its way"},
	{name: "a 64 MiB line: host peak, more", unit: "MB", limit: 40},
	{name: "a 64 MiB line: plugin peak", unit: "MB", limit: 256},
	{name: "a 64 MiB line: kept afterwards", unit: "MB", limit: 32},
	{name: "consumer stalled for 8 s: lines lost", unit: "lines", none: true},
	{name: "consumer stalled for 8 s: host grows by", unit: "MB", limit: 16},
	{name: "host killed → shim, agent, tree gone", unit: "ms", limit: 50},
	{name: "bin/amux", unit: "MB", limit: 16},
	{name: "10,000 deltas in one message: the run", unit: "s"},
	{name: "100,000 deltas in one message: the run", unit: "s", tenth: "10,000 deltas in one message: the run"},
	{name: "1,000,000 deltas in one message: the run", unit: "s", tenth: "100,000 deltas in one message: the run"},
	{name: "10,000 deltas in one message: host, peak", unit: "MB"},
	{name: "100,000 deltas in one message: host, peak", unit: "MB"},
	{name: "1,000,000 deltas in one message: host, peak", unit: "MB"},
	{name: "10,000 deltas in one message: plugin, peak", unit: "MB"},
	{name: "100,000 deltas in one message: plugin, peak", unit: "MB"},
	{name: "1,000,000 deltas in one message: plugin, peak", unit: "MB"},
	{name: "disk for a 261-byte line, fresh", unit: "B"},
	{name: "disk for a 261-byte line, packed", unit: "B", limit: 300},
	{name: "its journal packed", unit: "s"},
	{name: "logs -n 20 of it", unit: "ms", limit: 30},
	{name: "logs of 10,000 events", unit: "ms"},
	{name: "logs of 100,000 events", unit: "ms", tenth: "logs of 10,000 events"},
	{name: "logs of 1,000,000 events", unit: "ms", limit: 1000, tenth: "logs of 100,000 events"},
	{name: "  the first of them shown", unit: "ms", limit: 50},
	{name: "  memory", unit: "MB"},
	{name: "logs -n 20 of 1,000,000 events", unit: "ms", limit: 30},
	{name: "logs --json of 1,000,000 events", unit: "ms", limit: 300},
	{name: "ps with 1,000 ended runs", unit: "ms", limit: 20},
	{name: "ps with 10,000 ended runs", unit: "ms", limit: 20},
	{name: "ps with 100,000 ended runs", unit: "ms", limit: 20},
	{name: "ps -n 20 with 100,000 ended runs", unit: "ms", limit: 100},
	{name: "ps -a with 1,000 ended runs", unit: "ms"},
	{name: "ps -a with 10,000 ended runs", unit: "ms", tenth: "ps -a with 1,000 ended runs"},
	{name: "ps -a with 100,000 ended runs", unit: "ms", tenth: "ps -a with 10,000 ended runs"},
	{name: "inbox with 100,000 ended runs", unit: "ms", limit: 20},
	{name: "cost of 1,000 runs", unit: "ms"},
	{name: "cost of 10,000 runs", unit: "ms", tenth: "cost of 1,000 runs"},
	{name: "cost of 100,000 runs", unit: "ms", limit: 500, tenth: "cost of 10,000 runs"},
	{name: "HTTP: the newest 100 of 100,000 runs", unit: "ms", limit: 100},
	{name: "top with 100,000 ended runs: first screen", unit: "ms", limit: 250},
	{name: "  of a processor, with 100,000 ended runs", unit: "%", limit: 10},
	{name: "a run where 100,000 have ended", unit: "ms"},
	{name: "ps with 10 live runs", unit: "ms"},
	{name: "ps with 100 live runs", unit: "ms", limit: 25, tenth: "ps with 10 live runs"},
	{name: "ps with 1,000 live runs", unit: "ms", limit: 250, tenth: "ps with 100 live runs"},
	{name: "inbox with 1,000 live runs", unit: "ms", limit: 250},
	{name: "top with 10 live runs: first screen", unit: "ms"},
	{name: "top with 100 live runs: first screen", unit: "ms", limit: 100, tenth: "top with 10 live runs: first screen"},
	{name: "top with 1,000 live runs: first screen", unit: "ms", limit: 250, tenth: "top with 100 live runs: first screen"},
	{name: "  of a processor, later", unit: "%", limit: 10},
	{name: "page with 10 live runs: all are there", unit: "ms"},
	{name: "page with 100 live runs: all are there", unit: "ms", limit: 100, tenth: "page with 10 live runs: all are there"},
	{name: "page with 1,000 live runs: all are there", unit: "ms", limit: 250, tenth: "page with 100 live runs: all are there"},
	{name: "  of a processor for the server, later", unit: "%", limit: 10},
	{name: "stop of one among 10 live runs", unit: "ms"},
	{name: "stop of one among 100 live runs", unit: "ms", limit: 50, tenth: "stop of one among 10 live runs"},
	{name: "stop of one among 1,000 live runs", unit: "ms", limit: 50, tenth: "stop of one among 100 live runs"},
	{name: "plugin of 10 live runs killed: one ends", unit: "ms"},
	{name: "plugin of 100 live runs killed: one ends", unit: "ms", limit: 200, tenth: "plugin of 10 live runs killed: one ends"},
	{name: "plugin of 1,000 live runs killed: one ends", unit: "ms", limit: 1000, tenth: "plugin of 100 live runs killed: one ends"},
	{name: "server with 10 live runs killed: ps shows all", unit: "ms"},
	{name: "server with 100 live runs killed: ps shows all", unit: "ms", limit: 200, tenth: "server with 10 live runs killed: ps shows all"},
	{name: "server with 1,000 live runs killed: ps shows all", unit: "ms", limit: 2000, tenth: "server with 100 live runs killed: ps shows all"},
	{name: "server with 10 live runs killed: the slowest of six", unit: "ms"},
	{name: "server with 100 live runs killed: the slowest of six", unit: "ms", limit: 400},
	{name: "server with 1,000 live runs killed: the slowest of six", unit: "ms", limit: 4000},
	{name: "server with 10 live runs killed: one is stopped", unit: "ms"},
	{name: "server with 100 live runs killed: one is stopped", unit: "ms", limit: 50, tenth: "server with 10 live runs killed: one is stopped"},
	{name: "server with 1,000 live runs killed: one is stopped", unit: "ms", limit: 50, tenth: "server with 100 live runs killed: one is stopped"},
	{name: "server with 10 live runs killed: a follower waits", unit: "ms"},
	{name: "server with 100 live runs killed: a follower waits", unit: "ms", limit: 200, tenth: "server with 10 live runs killed: a follower waits"},
	{name: "server with 1,000 live runs killed: a follower waits", unit: "ms", limit: 2000, tenth: "server with 100 live runs killed: a follower waits"},
	{name: "sessions list over 100", unit: "ms"},
	{name: "sessions list over 1,000", unit: "ms", tenth: "sessions list over 100"},
	{name: "sessions list over 10,000", unit: "ms", limit: 300, tenth: "sessions list over 1,000"},
	{name: "sessions search through 10 MB", unit: "ms"},
	{name: "sessions search through 100 MB", unit: "ms", tenth: "sessions search through 10 MB"},
	{name: "sessions search through 1,000 MB", unit: "ms", tenth: "sessions search through 100 MB"},
	{name: "  a second", unit: "MB", limit: 200, least: true},
}

// table gathers samples.
type table struct {
	floors, measured map[string][]float64
	empty            []float64 // starts of an empty program
}

func newTable() *table {
	return &table{floors: map[string][]float64{}, measured: map[string][]float64{}}
}

// add puts in a sample; NaN stands for no floor.
func (t *table) add(name string, floor, measured float64) {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
		panic("no row " + name)
	}
	if !math.IsNaN(floor) {
		t.floors[name] = append(t.floors[name], floor)
	}
	t.measured[name] = append(t.measured[name], measured)
}

// slower is by how much this machine is slower than that of the budgets.
func (t *table) slower() float64 { return max(1, median(t.empty)/reference) }

var none = math.NaN()

// budget is what a row may be here and now.
func (t *table) budget(r row, floor float64) float64 {
	budget := r.limit
	switch r.unit {
	case "s", "ms", "µs":
		budget = (r.limit + r.extra) * t.slower()
	}
	switch {
	case r.extra > 0:
		return floor + budget
	case r.times > 0:
		return max(budget, r.times*floor)
	}
	return budget
}

// print says whether any row is over its budget by more than a fifth.
func (t *table) print(out io.Writer) (over bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "row\tfloor\tmeasured\t\tbudget\there\t\taim\tn")
	for _, r := range rows {
		samples := t.measured[r.name]
		if len(samples) == 0 {
			continue
		}
		floor, measured := none, median(samples)
		if f := t.floors[r.name]; len(f) > 0 {
			floor = median(f)
		}
		nominal, here, verdict := text(r.limit), t.budget(r, floor), "ok"
		if r.extra > 0 {
			nominal = "+" + text(r.extra)
		}
		if r.least && measured < here || !r.least && measured > here {
			verdict = "over"
		}
		hereText := text(here)
		if here == 0 && !r.none {
			nominal, hereText, verdict = "", "", ""
		}
		if small := t.measured[r.tenth]; len(small) > 0 && measured > steepest*median(small) {
			verdict, over = "steep", true
		}
		aim := ""
		if r.aim > 0 {
			aim = strings.Repeat("+", len(nominal)-len(strings.TrimPrefix(nominal, "+"))) + text(r.aim)
		}
		over = over || verdict == "over" && (r.least && measured < here/1.2 || !r.least && measured > here*1.2)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", r.name, text(floor), text(measured), r.unit, nominal, hereText, verdict, aim, len(samples))
	}
	w.Flush()
	fmt.Fprintf(out, "\nan empty program starts in %s ms; it was %s ms where the budgets were set\n", text(median(t.empty)), text(reference))
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
