package policy

import (
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// maxAttempts is more than anybody can mean.
const maxAttempts = 100

// Retry says how often and when an agent that has failed is started again; nil: never.
type Retry struct {
	MaxAttempts int
	BaseDelay   time.Duration
	MaxDelay    time.Duration
	Jitter      float64
}

// Validate checks the numbers.
func (r *Retry) Validate(conversation bool) error {
	switch {
	case r == nil:
		return nil
	case conversation:
		return pluginapi.Errorf(pluginapi.CodeValidation, "retries are for runs of one prompt").WithHint("send the prompt of a conversation again, or leave out --retry")
	case r.MaxAttempts < 0 || r.MaxAttempts > maxAttempts:
		return pluginapi.Errorf(pluginapi.CodeValidation, "%d attempts are not between 1 and %d", r.MaxAttempts, maxAttempts)
	case r.BaseDelay < 0 || r.MaxDelay < 0 || r.Jitter < 0 || r.Jitter > 1:
		return pluginapi.Errorf(pluginapi.CodeValidation, "the delays of retries cannot be negative, nor their jitter outside of 0 to 1")
	}
	return nil
}

// Attempts is how often the agent may be started.
func (r *Retry) Attempts() int {
	switch {
	case r == nil:
		return 1
	case r.MaxAttempts == 0:
		return 3
	}
	return r.MaxAttempts
}

// Delay is how long to wait behind attempt n, or behind a provider that has asked for
// a wait, by a number from 0 to 1. ok is false if that is too long.
func (r *Retry) Delay(n int, asked time.Duration, random float64) (delay time.Duration, ok bool) {
	base, longest, jitter := r.BaseDelay, r.MaxDelay, r.Jitter
	if base == 0 {
		base = time.Second
	}
	if longest == 0 {
		longest = 30 * time.Second
	}
	if jitter == 0 {
		jitter = 0.1
	}
	delay = base
	for ; n > 1 && delay < longest; n-- {
		delay *= 2
	}
	delay = min(delay, longest)
	delay += time.Duration(float64(delay) * jitter * (2*random - 1))
	return max(delay, asked), asked <= longest
}
