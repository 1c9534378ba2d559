package turn

import "github.com/amux-dev/amux/pluginapi"

// fillings are the parts of a model's context at which a warning is due, in percent.
var fillings = []float64{80, 90, 95}

// Context warns when the model's context fills up. The zero value is ready.
type Context struct{ warned int }

// Used takes in how many tokens of the context are used, and emits a warning when more
// than the next part of it is.
func (c *Context) Used(used, limit int64, out Events) {
	if used < 0 || limit <= 0 {
		return
	}
	percent := float64(used) * 100 / float64(limit)
	reached := 0
	for reached < len(fillings) && percent >= fillings[reached] {
		reached++
	}
	if reached > c.warned {
		out.Event(pluginapi.ContextLimitWarning{UsedTokens: &used, MaxTokens: &limit, PctUsed: &percent})
	}
	c.warned = reached
}
