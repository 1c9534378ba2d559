package main

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// meter counts what the agent takes of its model and of its account.
type meter struct {
	model    string
	window   *int64 // tokens that the model takes
	context  turn.Context
	resetsAt int64 // when the account's limit ends, in seconds since 1970; 0: not known
}

// spent are the tokens of a thread so far, as the CLI counts them; they go on where another
// run or thread has stopped.
type spent struct {
	total    tokens
	known    bool
	inherits bool // what was taken before
}

type tokens struct{ input, cached, written, output, thinking int64 }

// usage emits the difference to what the thread has taken before. A thread that
// goes on begins with the figures of its past, which the CLI tells before the
// first turn.
//
// It reports whether there was a request since.
func (m *meter) usage(t *thread, main bool, usage jsonl.Value, out turn.Events) bool {
	if window := usage.IntPtr("modelContextWindow"); window != nil {
		m.window = window
	}
	total, ok := readTokens(usage.Get("total"))
	if !ok {
		return false
	}
	if used, ok := usage.Int("last", "totalTokens"); ok && m.window != nil && main {
		m.context.Used(used, *m.window, out)
	}
	s := &t.spent
	before := s.total
	if s.inherits && !s.known {
		if !t.active {
			s.total, s.known = total, true
			return false
		}
		last, _ := readTokens(usage.Get("last"))
		before = total.less(last)
	}
	s.total, s.known = total, true
	m.tokens(total.less(before), out)
	return total != before
}

// tokens emits what a request took. The CLI's input counts what was cached, its
// output what was thought.
func (m *meter) tokens(n tokens, out turn.Events) {
	if n == (tokens{}) {
		return
	}
	input := n.input - n.cached - n.written
	out.Event(pluginapi.TokenUsage{
		InputTokens: &input, OutputTokens: &n.output, ThinkingTokens: &n.thinking,
		CacheReadTokens: &n.cached, CacheWriteTokens: &n.written, Model: m.model,
	})
}

func (n tokens) less(o tokens) tokens {
	return tokens{n.input - o.input, n.cached - o.cached, n.written - o.written, n.output - o.output, n.thinking - o.thinking}
}

// readTokens reads figures of app-server, or of a stored session.
func readTokens(v jsonl.Value) (tokens, bool) {
	get := func(names ...string) int64 {
		for _, name := range names {
			if n, ok := v.Int(name); ok {
				return n
			}
		}
		return 0
	}
	return tokens{
		input:    get("inputTokens", "input_tokens"),
		cached:   get("cachedInputTokens", "cached_input_tokens"),
		written:  get("cacheWriteInputTokens", "cache_write_input_tokens"),
		output:   get("outputTokens", "output_tokens"),
		thinking: get("reasoningOutputTokens", "reasoning_output_tokens"),
	}, v.IsObject()
}

// limits keeps when the account may ask again: the end of the window that is used
// up.
func (m *meter) limits(limits jsonl.Value) {
	m.resetsAt = 0
	for _, window := range []string{"primary", "secondary"} {
		used, _ := limits.Float(window, "usedPercent")
		if at, ok := limits.Int(window, "resetsAt"); ok && used >= 100 {
			m.resetsAt = max(m.resetsAt, at)
		}
	}
}

// retryAfter is how long that is from a time, in seconds since 1970, as the CLI
// tells it: there is no clock here. nil is not known.
func (m *meter) retryAfter(now int64) *int64 {
	if m.resetsAt == 0 || now == 0 || m.resetsAt <= now {
		return nil
	}
	ms := (m.resetsAt - now) * 1000
	return &ms
}
