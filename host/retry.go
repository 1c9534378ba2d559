package host

import "time"

// maxAttempts is more than anybody can mean.
const maxAttempts = 100

func (r *Retry) validate(conversation bool) error {
	switch {
	case r == nil:
		return nil
	case conversation:
		return invalid("retries are for runs of one prompt").WithHint("send the prompt of a conversation again, or leave out --retry")
	case r.MaxAttempts < 0 || r.MaxAttempts > maxAttempts:
		return invalid("%d attempts are not between 1 and %d", r.MaxAttempts, maxAttempts)
	case r.BaseDelay < 0 || r.MaxDelay < 0 || r.Jitter < 0 || r.Jitter > 1:
		return invalid("the delays of retries cannot be negative, nor their jitter outside of 0 to 1")
	}
	return nil
}

// attempts is how often the agent may be started.
func (r *Retry) attempts() int {
	switch {
	case r == nil:
		return 1
	case r.MaxAttempts == 0:
		return 3
	}
	return r.MaxAttempts
}

// delay is how long to wait behind attempt n, or behind a provider that has asked for
// a wait, by a number from 0 to 1. ok is false if that is too long.
func (r *Retry) delay(n int, asked time.Duration, random float64) (delay time.Duration, ok bool) {
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
