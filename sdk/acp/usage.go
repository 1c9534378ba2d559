package acp

import (
	"cmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// tokens tells what a prompt took.
func (c *conversation) tokens(result jsonl.Value, out *sdk.Out) {
	read := c.config.Usage
	if read == nil {
		read = usage
	}
	u, ok := read(result)
	if !ok {
		return
	}
	if u, ok = c.counter.take(u); !ok {
		return
	}
	if u.OutputTokens != nil {
		c.answered = *u.OutputTokens
	}
	out.Event(u)
	if c.config.LastRequest && len(c.calls) > 0 {
		out.Event(pluginapi.Debug{Level: "info", Message: c.Agent + " tells the tokens of the turn's last request alone, so they are too few; a cost is that of the whole turn"})
	}
}

// Usage reads tokens in the protocol's own form, as they are told.
func Usage(result jsonl.Value) (pluginapi.TokenUsage, bool) {
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
	u, ok := Usage(result)
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
