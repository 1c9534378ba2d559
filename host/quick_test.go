//go:build linux && !race

package host_test

import "time"

// patience is how long the hosts of these tests wait for a plugin: long for a
// busy machine, short for a test.
const patience = 3 * time.Second

// instrumented: with the race detector.
const instrumented = false

// races is how often what happens at one moment does so in one test.
const races = 200
