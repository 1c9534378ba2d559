package main

import (
	"strings"
	"testing"
)

func TestBestOfTheHosts(t *testing.T) {
	bare, ours, theirs := &host{id: "bare", title: "bare CLI", bare: true}, &host{id: "ours", title: "ours"}, &host{id: "theirs", title: "theirs"}
	table := newTable()
	for h, value := range map[*host]float64{bare: 1, ours: 30, theirs: 20} {
		table.add("--help", h, value)
		table.add("100,000 lines: lines a second", h, value)
	}
	table.add("memory of an idle run, without the agent", ours, 5)
	var out strings.Builder
	table.print(&out, []*host{bare, ours, theirs})
	for _, want := range []string{
		"--help, ms 1 30 20 *",
		"100,000 lines: lines a second 1 30 * 20",
		"memory of an idle run, without the agent, MB - 5 -", // nobody to be better than
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestStamp(t *testing.T) {
	for line, want := range map[string]int64{
		`{"runId":"R","type":"text_delta","delta":"t=1795712749993708324...","accumulated":"t=1795712749993708324..."}`: 1795712749993708324,
		`{"type":"log","line":"{\"delta\":{\"text\":\"t=1795712749993708324...\"}}"}`:                                   0,
		`{"type":"text_delta","delta":"t=17"}`:                                                                          0,
	} {
		if got := stamp([]byte(line), deltaMark); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}
