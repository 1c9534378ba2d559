package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// curves are the samples of one soak.
type curves struct {
	length  time.Duration
	samples []sample
}

func (c *curves) add(at time.Duration, s sample) {
	s.at = at
	c.samples = append(c.samples, s)
}

// curve is one figure over time. It may grow by a tenth, and by spare, which is noise.
type curve struct {
	name  string
	of    func(sample) float64
	spare float64
}

var drawn = []curve{
	{"server: memory, MB", func(s sample) float64 { return s.server.memory }, 4},
	{"server: descriptors", func(s sample) float64 { return float64(s.server.files) }, 20},
	{"server: threads", func(s sample) float64 { return float64(s.server.threads) }, 4},
	{"plugins: memory, MB", func(s sample) float64 { return s.plugins.memory }, 4},
	{"plugins: descriptors and threads", func(s sample) float64 { return float64(s.plugins.files + s.plugins.threads) }, 10},
	{"processes", func(s sample) float64 { return float64(s.processes) }, 20},
	{"files", func(s sample) float64 { return float64(s.entries) }, 200},
	{"disk, MB", func(s sample) float64 { return s.disk }, 20},
}

// verdict prints the median of each curve at the beginning, after the warm-up, and at the end,
// and reports whether none has grown.
func (c *curves) verdict() bool {
	flat := true
	for _, d := range drawn {
		first, last := c.median(d, warmUp, warmUp+0.2), c.median(d, 0.8, 1)
		word := "flat"
		if last > first*1.1+d.spare {
			word, flat = "GROWS", false
		}
		fmt.Printf("%-34s %8.1f → %8.1f  %s\n", d.name, first, last, word)
	}
	return flat
}

// median is that of the samples between two parts of the time.
func (c *curves) median(d curve, from, to float64) float64 {
	var values []float64
	for _, s := range c.samples {
		if part := float64(s.at) / float64(c.length); part >= from && part <= to {
			values = append(values, d.of(s))
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// picture draws the curves, each in a box of its own, as SVG.
func (c *curves) picture() []byte {
	const width, height, left, gap = 720, 90, 60, 34
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n",
		left+width+20, len(drawn)*(height+gap)+20)
	fmt.Fprintf(&b, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n")
	for i, d := range drawn {
		top := i*(height+gap) + 24
		most := 1.0
		for _, s := range c.samples {
			most = max(most, d.of(s)*1.1)
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", left, top-6, d.name)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#666\">%.0f</text>\n", left-6, top+10, most)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#666\">0</text>\n", left-6, top+height)
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#ccc\"/>\n<polyline fill=\"none\" stroke=\"#06c\" points=\"", left, top, width, height)
		for _, s := range c.samples {
			fmt.Fprintf(&b, "%.1f,%.1f ", left+width*float64(s.at)/float64(c.length), float64(top+height)-height*d.of(s)/most)
		}
		fmt.Fprint(&b, "\"/>\n")
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#666\">%s</text>\n</svg>\n", left+width, len(drawn)*(height+gap)+14, c.length)
	return b.Bytes()
}
