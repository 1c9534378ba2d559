//go:build !linux

package adapter

// resident is not known here: plugins are not bounded.
func resident(int) int64 { return 0 }
