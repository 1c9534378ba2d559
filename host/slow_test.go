//go:build linux && race

package host_test

import "time"

// patience is longer for programs that the race detector slows down.
const patience = 10 * time.Second

// instrumented: with the race detector.
const instrumented = true

// races is how often what happens at one moment does so in one test: with the race
// detector thousands of times.
const races = 1200
