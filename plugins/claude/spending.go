package main

import (
	"math"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// spending is what the run took so far, in tokens and money.
type spending struct {
	resumed bool             // the session has a past, which the CLI's totals begin with
	total   *float64         // the CLI's own count at the last result
	deltas  bool             // the CLI tells what has come since then
	run     *pluginapi.Money // what this run took; nil: not known
}

// result emits what the turn took and returns its cost, nil if that is not known.
// The CLI's totals are cumulative, and a session that goes on begins with those
// of its past: only the difference since the last result is this run's. That
// difference is given whole in the first of several results that come together.
func (m *spending) result(line jsonl.Value, out *sdk.Out) *pluginapi.Money {
	total, hasTotal := line.Float("total_cost_usd")
	before := m.total
	if hasTotal {
		m.total = &total
	}
	since := line.Get("model_usage_since_last_result")
	if since.IsObject() {
		m.deltas = true
		cost := 0.0
		known := true
		for model, usage := range since.Fields() {
			if usd, ok := usage.Float("costUSD"); ok {
				cost += usd
			} else {
				known = false
			}
			out.Event(pluginapi.TokenUsage{
				InputTokens:      usage.IntPtr("inputTokens"),
				OutputTokens:     usage.IntPtr("outputTokens"),
				ThinkingTokens:   usage.IntPtr("thinkingTokens"),
				CacheReadTokens:  usage.IntPtr("cacheReadInputTokens"),
				CacheWriteTokens: usage.IntPtr("cacheCreationInputTokens"),
				Model:            model,
			})
		}
		if since.Len() == 0 || !known {
			return nil
		}
		return m.cost(cost, out)
	}
	if m.deltas {
		return nil // it was in an earlier result
	}
	// An older CLI.
	if usage := line.Get("usage"); usage.IsObject() && line.Text("terminal_reason") != "" {
		out.Event(pluginapi.TokenUsage{
			InputTokens:      usage.IntPtr("input_tokens"),
			OutputTokens:     usage.IntPtr("output_tokens"),
			ThinkingTokens:   usage.IntPtr("output_tokens_details", "thinking_tokens"),
			CacheReadTokens:  usage.IntPtr("cache_read_input_tokens"),
			CacheWriteTokens: usage.IntPtr("cache_creation_input_tokens"),
		})
	}
	switch {
	case !hasTotal:
		return nil
	case before != nil && total >= *before:
		return m.cost(total-*before, out)
	case before == nil && m.resumed:
		return nil // what it inherited is not known
	}
	return m.cost(total, out)
}

func (m *spending) cost(usd float64, out *sdk.Out) *pluginapi.Money {
	// Differences of floating-point sums have noise far below a cent.
	usd = math.Round(usd*1e10) / 1e10
	if usd == 0 {
		return nil
	}
	money := pluginapi.Money{USD: usd}
	out.Event(pluginapi.Cost{Cost: money})
	if m.run == nil {
		m.run = &pluginapi.Money{}
	}
	m.run.USD = math.Round((m.run.USD+usd)*1e10) / 1e10
	return &money
}
