package acp

import (
	"cmp"
	"math"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// spending is what the session takes: tokens, money, and the room in its context.
type spending struct {
	*link
	config  *Usage
	counter counter
	context turn.Context

	cost      float64 // of the session, as last told
	costKnown bool

	// Of the turn.
	answered int64 // output tokens
	turnCost *pluginapi.Money
}

// agent takes the name that the agent gives itself.
func (s *spending) agent(name string) {
	s.counter.cumulative = s.config.Cumulative
	if s.config.Counts != nil {
		cumulative, known := s.config.Counts(name)
		s.counter.cumulative, s.counter.unsure = cumulative || !known, !known
	}
}

// session begins with a new session, or with one that goes on.
func (s *spending) session(goesOn bool) {
	s.costKnown = !goesOn
	// Of a session that goes on the first figure may have its past in it.
	s.counter.started = !goesOn || !s.counter.unsure
}

// turn begins a turn.
func (s *spending) turn() { s.answered, s.turnCost = 0, nil }

// update takes a usage_update.
func (s *spending) update(update jsonl.Value, out *sdk.Out) {
	if used, ok := update.Int("used"); ok {
		if size, ok := update.Int("size"); ok {
			s.context.Used(used, size, out)
		}
	}
	s.money(update.Get("cost"), out)
}

// tokens emits what a prompt took. several: of more than one request to the model.
func (s *spending) tokens(result jsonl.Value, several bool, out *sdk.Out) {
	read := s.config.Read
	if read == nil {
		read = usage
	}
	u, ok := read(result)
	if !ok {
		return
	}
	if u, ok = s.counter.take(u); !ok {
		return
	}
	if u.OutputTokens != nil {
		s.answered = *u.OutputTokens
	}
	out.Event(u)
	if s.config.LastRequest && several {
		out.Event(pluginapi.Debug{Level: "info", Message: s.Agent + " tells the tokens of the turn's last request alone, so they are too few; a cost is that of the whole turn"})
	}
}

// money takes the session's cost so far. What a session that goes on has cost
// before is told before the first prompt, or not known.
func (s *spending) money(v jsonl.Value, out *sdk.Out) {
	total, ok := v.Float("amount")
	if !ok || v.Text("currency") != "USD" {
		return
	}
	before := s.cost
	s.cost = total
	if !s.costKnown || !s.Busy() {
		s.costKnown = true
		return
	}
	// Differences of floating-point sums have noise far below a cent.
	usd := math.Round((total-before)*1e10) / 1e10
	if usd <= 0 {
		return
	}
	out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: usd}})
	if s.turnCost == nil {
		s.turnCost = &pluginapi.Money{}
	}
	s.turnCost.USD = math.Round((s.turnCost.USD+usd)*1e10) / 1e10
}

// Tokens reads tokens in the protocol's own form, as they are told.
func Tokens(result jsonl.Value) (pluginapi.TokenUsage, bool) {
	u := result.Get("usage")
	if !u.IsObject() {
		return pluginapi.TokenUsage{}, false
	}
	return pluginapi.TokenUsage{
		InputTokens: u.IntPtr("inputTokens"), OutputTokens: u.IntPtr("outputTokens"), ThinkingTokens: u.IntPtr("thoughtTokens"),
		CacheReadTokens: u.IntPtr("cachedReadTokens"), CacheWriteTokens: u.IntPtr("cachedWriteTokens"),
	}, true
}

// usage reads tokens as events count them: input without what has to do with a cache,
// output with thoughts. Agents count them so or otherwise; the sum that they tell
// beside them says how.
func usage(result jsonl.Value) (pluginapi.TokenUsage, bool) {
	u, ok := Tokens(result)
	total, known := result.Int("usage", "totalTokens")
	if !ok || !known || u.InputTokens == nil || u.OutputTokens == nil {
		return u, ok
	}
	in, out := *u.InputTokens, *u.OutputTokens
	thoughts, cached := value(u.ThinkingTokens), value(u.CacheReadTokens)+value(u.CacheWriteTokens)
	switch rest := total - in - out; {
	case rest == cached: // both as events do
	case rest == thoughts+cached:
		out += thoughts
	case rest == 0:
		in -= cached
	case rest == thoughts:
		in, out = in-cached, out+thoughts
	}
	in = max(in, 0)
	u.InputTokens, u.OutputTokens = &in, &out
	return u, true
}

// counter makes of the usage of responses what each prompt took.
type counter struct {
	cumulative bool // unsure: by the protocol's word
	unsure     bool
	started    bool                 // what was before the next figure is known
	last       pluginapi.TokenUsage // as it was told
	owed       pluginapi.TokenUsage // left out so far, if the agent counts each prompt by itself
}

// take gives what a prompt took; false: that is not known.
func (c *counter) take(now pluginapi.TokenUsage) (pluginapi.TokenUsage, bool) {
	before := c.last
	c.last = now
	if c.unsure && less(now, before) {
		// A sum becomes no less: the agent counts each prompt by itself.
		c.cumulative, c.unsure = false, false
		return plus(now, c.owed), true
	}
	switch {
	case !c.cumulative:
		return now, true
	case !c.started:
		c.started = true
		c.owed = now
		return now, false
	case c.unsure:
		c.owed = plus(c.owed, before)
	}
	return each(now, before, func(a, b *int64) *int64 {
		if a == nil || b == nil {
			return a
		}
		d := max(*a-*b, 0)
		return &d
	}), true
}

func plus(a, b pluginapi.TokenUsage) pluginapi.TokenUsage {
	return each(a, b, func(a, b *int64) *int64 {
		if a == nil || b == nil {
			return cmp.Or(a, b)
		}
		sum := *a + *b
		return &sum
	})
}

// less reports whether a figure is less than it was.
func less(now, before pluginapi.TokenUsage) bool {
	found := false
	each(now, before, func(a, b *int64) *int64 {
		found = found || a != nil && b != nil && *a < *b
		return nil
	})
	return found
}

// each makes of each two figures one.
func each(a, b pluginapi.TokenUsage, join func(a, b *int64) *int64) pluginapi.TokenUsage {
	return pluginapi.TokenUsage{
		InputTokens: join(a.InputTokens, b.InputTokens), OutputTokens: join(a.OutputTokens, b.OutputTokens),
		ThinkingTokens:  join(a.ThinkingTokens, b.ThinkingTokens),
		CacheReadTokens: join(a.CacheReadTokens, b.CacheReadTokens), CacheWriteTokens: join(a.CacheWriteTokens, b.CacheWriteTokens),
		Model: a.Model,
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
