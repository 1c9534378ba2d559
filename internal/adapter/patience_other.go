//go:build !linux

package adapter

import "time"

// waitedForCPU is not known here.
func waitedForCPU(int) time.Duration { return 0 }
