package sessions

import (
	"slices"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func TestSessionFilter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(age time.Duration) *time.Time { when := now.Add(-age); return &when }
	h := &clitest.Host{RunList: []host.RunInfo{
		{Agent: "a", SessionID: "new", Tags: []string{"x"}, End: &pluginapi.RunEnd{Cost: &pluginapi.Money{USD: 0.3}}},
		{Agent: "a", SessionID: "new", Tags: []string{"y"}, End: &pluginapi.RunEnd{Cost: &pluginapi.Money{USD: 0.3}}},
		{Agent: "b", SessionID: "old", Tags: []string{"x"}},
	}}
	sessions := []host.Session{
		{Agent: "a", ID: "new", Updated: at(time.Hour), Model: "claude-Opus-5"},
		{Agent: "b", ID: "old", Updated: at(72 * time.Hour), Model: "gpt-5"},
		{Agent: "b", ID: "bare"},
	}
	for name, c := range map[string]struct {
		filter filter
		want   []string
	}{
		"nothing":       {filter{}, []string{"new", "old", "bare"}},
		"hours":         {filter{since: "2h"}, []string{"new"}},
		"days":          {filter{since: "4d"}, []string{"new", "old"}},
		"date":          {filter{since: "2026-11-22"}, []string{"new"}},
		"model":         {filter{model: "opus"}, []string{"new"}},
		"tag":           {filter{tags: []string{"x"}}, []string{"new", "old"}},
		"tags":          {filter{tags: []string{"x", "y"}}, []string{"new"}},
		"cost of all":   {filter{cost: "$0.5"}, []string{"new"}},
		"cost too high": {filter{cost: "0.7"}, nil},
		"together":      {filter{since: "4d", model: "gpt", tags: []string{"x"}}, []string{"old"}},
	} {
		if err := c.filter.parse(now); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kept, err := c.filter.apply(h, slices.Clone(sessions))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range kept {
			got = append(got, x.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, bad := range []filter{{since: "soon"}, {since: "-3d"}, {since: "0h"}, {cost: "NaN"}, {cost: "-1"}, {cost: "much"}} {
		if bad.parse(now) == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
