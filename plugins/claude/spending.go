package main

import (
	"math"
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// spending is what the run took so far, in tokens and money.
type spending struct {
	resumed bool             // the session has a past, which the CLI's totals begin with
	total   *float64         // the CLI's own count at the last result
	deltas  bool             // the CLI tells what has come since then
	run     *pluginapi.Money // what this run took; nil: not known

	told    []call // calls emitted since the last result, which counts them again
	last    call   // of the main conversation: all that the model's context has
	window  *int64 // how many tokens the model takes
	context turn.Context
}

// call is one call to a model.
type call struct {
	model  string
	tokens tokens
	thinks bool // the tokens of thinking are known
}

// maxModels is how many models are told apart between two results. There are two or three.
const maxModels = 16

type tokens struct{ input, output, thinking, cacheRead, cacheWrite int64 }

// read takes in usage as the API gives it. Later figures of a message replace earlier
// ones; those that are left out stay.
func (c *call) read(usage jsonl.Value) {
	for name, figure := range map[string]*int64{
		"input_tokens": &c.tokens.input, "output_tokens": &c.tokens.output,
		"cache_read_input_tokens": &c.tokens.cacheRead, "cache_creation_input_tokens": &c.tokens.cacheWrite,
	} {
		if n, ok := usage.Int(name); ok && n > 0 {
			*figure = n
		}
	}
	if n, ok := usage.Int("output_tokens_details", "thinking_tokens"); ok && n >= 0 {
		c.tokens.thinking, c.thinks = n, true
	}
}

// each are the figures of both, pair by pair.
func (t *tokens) each(o *tokens) [5][2]*int64 {
	return [5][2]*int64{
		{&t.input, &o.input}, {&t.output, &o.output}, {&t.thinking, &o.thinking},
		{&t.cacheRead, &o.cacheRead}, {&t.cacheWrite, &o.cacheWrite},
	}
}

// without takes off what was told before, and leaves there what is more than t has.
func (t *tokens) without(told *tokens) {
	for _, figure := range t.each(told) {
		both := min(*figure[0], *figure[1])
		*figure[0] -= both
		*figure[1] -= both
	}
}

func (m *spending) emit(c call, out turn.Events) {
	e := pluginapi.TokenUsage{
		InputTokens: &c.tokens.input, OutputTokens: &c.tokens.output,
		CacheReadTokens: &c.tokens.cacheRead, CacheWriteTokens: &c.tokens.cacheWrite, Model: c.model,
	}
	if c.thinks {
		e.ThinkingTokens = &c.tokens.thinking
	}
	out.Event(e)
}

// call emits what a streamed message took, so that a budget need not wait for the turn's
// end. Only the main conversation is streamed.
func (m *spending) call(c call, main bool, out turn.Events) {
	if c.tokens == (tokens{}) {
		return
	}
	m.emit(c, out)
	if i := slices.IndexFunc(m.told, func(t call) bool { return t.model == c.model }); i < 0 && len(m.told) < maxModels {
		m.told = append(m.told, c)
	} else {
		i = max(i, 0)
		for _, figure := range m.told[i].tokens.each(&c.tokens) {
			*figure[0] += *figure[1]
		}
		m.told[i].thinks = m.told[i].thinks && c.thinks
	}
	if main {
		m.last = c
		m.fill(out)
	}
}

// fill warns when the model's context fills up.
func (m *spending) fill(out turn.Events) {
	if t := m.last.tokens; m.window != nil {
		m.context.Used(t.input+t.cacheRead+t.cacheWrite+t.output, *m.window, out)
	}
}

// rest emits what the models took that has not been told, such as sub-agents and calls that
// were cut off.
func (m *spending) rest(models []call, out turn.Events) {
	thinks := !slices.ContainsFunc(m.told, func(c call) bool { return !c.thinks })
	for i := range models {
		for j := range m.told {
			if m.told[j].model == models[i].model {
				models[i].tokens.without(&m.told[j].tokens)
			}
		}
	}
	for i := range models {
		for j := range m.told { // under another name
			models[i].tokens.without(&m.told[j].tokens)
		}
		if models[i].tokens != (tokens{}) || models[i].thinks && !thinks {
			m.emit(models[i], out)
		}
	}
	m.told = nil
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
		var models []call
		for model, usage := range since.Fields() {
			if usd, ok := usage.Float("costUSD"); ok {
				cost += usd
			} else {
				known = false
			}
			figure := func(name string) int64 { n, _ := usage.Int(name); return max(n, 0) }
			models = append(models, call{model: model, thinks: usage.Exists("thinkingTokens"), tokens: tokens{
				input: figure("inputTokens"), output: figure("outputTokens"), thinking: figure("thinkingTokens"),
				cacheRead: figure("cacheReadInputTokens"), cacheWrite: figure("cacheCreationInputTokens"),
			}})
			if window := usage.IntPtr("contextWindow"); window != nil && (model == m.last.model || since.Len() == 1) {
				m.window = window
			}
		}
		m.rest(models, out)
		m.fill(out)
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
		var c call
		c.read(usage)
		m.rest([]call{c}, out)
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
