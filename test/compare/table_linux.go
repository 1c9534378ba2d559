package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// row is a line of the table.
type row struct {
	name string
	unit string
	most bool // more is better
}

var rows = []row{
	{name: "--help", unit: "ms"},
	{name: "launch → agent's main", unit: "ms"},
	{name: "100,000 lines: lines a second", most: true},
	{name: "100,000 lines: CPU of all processes, a line", unit: "µs"},
	{name: "memory of an idle run, without the agent", unit: "MB"},
	{name: "latency at 1,000 lines/s, p50", unit: "µs"},
	{name: "latency at 1,000 lines/s, p99", unit: "µs"},
	{name: "processes left 2 s after kill -9 of the host"},
}

// table gathers samples by row and host.
type table struct{ samples map[string][]float64 }

func newTable() *table { return &table{map[string][]float64{}} }

func (t *table) add(name string, h *host, value float64) {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
		panic("no row " + name)
	}
	t.samples[name+"\x00"+h.id] = append(t.samples[name+"\x00"+h.id], value)
}

// value is the median of a row's samples, NaN if it has none.
func (t *table) value(r row, h *host) float64 {
	return quantile(t.samples[r.name+"\x00"+h.id], 0.5)
}

// best is the best value among the hosts in a row, if there are several. The agent by
// itself does not count as a host.
func (t *table) best(r row, hosts []*host) string {
	var values []float64
	for _, h := range hosts {
		if v := t.value(r, h); !h.bare && !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	switch {
	case len(values) < 2:
		return ""
	case r.most:
		return text(slices.Max(values))
	default:
		return text(slices.Min(values))
	}
}

func (t *table) print(out io.Writer, hosts []*host) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, k := range []kind{claude, acp} {
		var columns []*host
		for _, h := range hosts {
			if h.kind == k {
				columns = append(columns, h)
			}
		}
		fmt.Fprint(w, k)
		for _, h := range columns {
			fmt.Fprint(w, "\t", h.title)
		}
		fmt.Fprintln(w)
		for _, r := range rows {
			if !slices.ContainsFunc(columns, func(h *host) bool { return !math.IsNaN(t.value(r, h)) }) {
				continue
			}
			name, best := r.name, t.best(r, columns)
			if r.unit != "" {
				name += ", " + r.unit
			}
			fmt.Fprint(w, name)
			for _, h := range columns {
				value := text(t.value(r, h))
				if !h.bare && value == best {
					value += " *"
				}
				fmt.Fprint(w, "\t", value)
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintln(out, "medians; * is the best of the hosts")
}

func text(f float64) string {
	switch {
	case math.IsNaN(f):
		return "-"
	case f >= 1_000_000:
		thousands := int(math.Round(f / 1000))
		return fmt.Sprintf("%d,%03d,000", thousands/1000, thousands%1000)
	case f >= 10_000:
		return strconv.Itoa(int(math.Round(f/1000))) + ",000"
	case f >= 100 || f == math.Trunc(f):
		return strconv.Itoa(int(math.Round(f)))
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// quantile is the sample at or above which the rest of them lie, NaN if there is none.
func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	if q == 0.5 && len(sorted)%2 == 0 {
		return (sorted[len(sorted)/2-1] + sorted[len(sorted)/2]) / 2
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
