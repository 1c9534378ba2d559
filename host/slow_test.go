//go:build linux && race

package host_test

import "time"

// patience is longer for programs that the race detector slows down.
const patience = 10 * time.Second

// instrumented: with the race detector.
const instrumented = true
