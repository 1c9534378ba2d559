package main

import "time"

// A wait is counted in eighths, of which one can pass while this process is
// stopped: a run that was paused for an hour has no server that hangs.
const parts = 8

// wait waits for done, but not longer than limit.
func wait(limit time.Duration, done <-chan struct{}) bool {
	tick := time.NewTicker(max(limit/parts, 1))
	defer tick.Stop()
	for range parts {
		select {
		case <-done:
			return true
		case <-tick.C:
		}
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
