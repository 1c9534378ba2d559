package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// usage is what a run has used so far, in all attempts.
type usage struct {
	added  int // figures so far
	turns  int
	tokens pluginapi.Tokens
	cost   *pluginapi.Money // nil: the agent has not said it
	model  string           // that the agent said it uses, for tokens without one
	models []ModelTokens    // never changed, but replaced
}

// ModelTokens are the tokens of one model. Model is empty if the agent has not named it.
type ModelTokens struct {
	Model  string           `json:"model"`
	Tokens pluginapi.Tokens `json:"tokens"`
}

// Usage is what a run has used so far, in all attempts.
type Usage struct {
	Turns  int              `json:"turns"`
	Tokens pluginapi.Tokens `json:"tokens"`
	Cost   *pluginapi.Money `json:"cost"`
	Models []ModelTokens    `json:"models,omitempty"`
}

// public is a copy that does not change with u.
func (u *usage) public() Usage {
	c := u.clone()
	return Usage{Turns: c.turns, Tokens: c.tokens, Cost: c.cost, Models: c.models}
}

func (u *usage) addTurn() { u.turns, u.added = u.turns+1, u.added+1 }

func (u *usage) addCost(cost *pluginapi.Money) {
	if cost == nil {
		return
	}
	u.added++
	if u.cost == nil {
		u.cost = &pluginapi.Money{}
	}
	if sum := u.cost.USD + cost.USD; !math.IsInf(sum, 0) { // which no JSON can say
		u.cost.USD = sum
	}
}

// allTokens are those that the models have read and written.
func (u *usage) allTokens() (n int64) {
	for _, figure := range []*int64{u.tokens.Input, u.tokens.Output, u.tokens.CacheRead, u.tokens.CacheWrite} {
		if figure != nil {
			n += *figure
		}
	}
	return n
}

// An agent may name any number of models; those beyond the first are one.
const (
	maxModels = 16
	maxModel  = 100 // bytes of a model's name
)

func (u *usage) addTokens(delta pluginapi.TokenUsage) {
	u.added++
	addTokens(&u.tokens, delta)
	model := cmp.Or(delta.Model, u.model)
	if len(model) > maxModel {
		model = strings.ToValidUTF8(model[:maxModel], "")
	}
	models := slices.Clone(u.models)
	i := slices.IndexFunc(models, func(m ModelTokens) bool { return m.Model == model })
	switch {
	case i >= 0:
	case len(models) < maxModels:
		models, i = append(models, ModelTokens{Model: model}), len(models)
	default:
		i = maxModels - 1
		models[i].Model = "others"
	}
	models[i].Tokens = copyTokens(models[i].Tokens)
	addTokens(&models[i].Tokens, delta)
	u.models = models
}

func addTokens(to *pluginapi.Tokens, delta pluginapi.TokenUsage) {
	add(&to.Input, delta.InputTokens)
	add(&to.Output, delta.OutputTokens)
	add(&to.Thinking, delta.ThinkingTokens)
	add(&to.CacheRead, delta.CacheReadTokens)
	add(&to.CacheWrite, delta.CacheWriteTokens)
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
	c.tokens = copyTokens(u.tokens)
	if u.cost != nil {
		copied := *u.cost
		c.cost = &copied
	}
	return c
}

func copyTokens(t pluginapi.Tokens) pluginapi.Tokens {
	for _, figure := range []**int64{&t.Input, &t.Output, &t.Thinking, &t.CacheRead, &t.CacheWrite} {
		if *figure != nil {
			copied := **figure
			*figure = &copied
		}
	}
	return t
}
