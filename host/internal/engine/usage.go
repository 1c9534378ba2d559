package engine

import (
	"math"

	"github.com/amux-dev/amux/pluginapi"
)

// usage is what a run has used so far, in all attempts.
type usage struct {
	turns  int
	tokens pluginapi.Tokens
	cost   *pluginapi.Money // nil: the agent has not said it
}

func (u *usage) addCost(cost *pluginapi.Money) {
	if cost == nil {
		return
	}
	if u.cost == nil {
		u.cost = &pluginapi.Money{}
	}
	if sum := u.cost.USD + cost.USD; !math.IsInf(sum, 0) { // which no JSON can say
		u.cost.USD = sum
	}
}

func (u *usage) addTokens(delta pluginapi.TokenUsage) {
	add(&u.tokens.Input, delta.InputTokens)
	add(&u.tokens.Output, delta.OutputTokens)
	add(&u.tokens.Thinking, delta.ThinkingTokens)
	add(&u.tokens.CacheRead, delta.CacheReadTokens)
	add(&u.tokens.CacheWrite, delta.CacheWriteTokens)
}

func add(total **int64, delta *int64) {
	if delta == nil {
		return
	}
	if *total == nil {
		*total = new(int64)
	}
	**total += *delta
}

// clone is a copy that does not change with u.
func (u *usage) clone() usage {
	c := *u
	for _, figure := range []**int64{&c.tokens.Input, &c.tokens.Output, &c.tokens.Thinking, &c.tokens.CacheRead, &c.tokens.CacheWrite} {
		if *figure != nil {
			copied := **figure
			*figure = &copied
		}
	}
	if u.cost != nil {
		copied := *u.cost
		c.cost = &copied
	}
	return c
}
