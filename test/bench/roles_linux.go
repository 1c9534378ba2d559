package main

import (
	"fmt"
	"os"
)

// play is the bench in another role than its own.
func play(role string) int {
	roles := map[string]func() error{"floor": playFloor}
	if err := roles[role](); err != nil {
		fmt.Fprintf(os.Stderr, "bench as %s: %v\n", role, err)
		return 1
	}
	return 0
}
