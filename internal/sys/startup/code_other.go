//go:build !linux

package startup

// unmapCode does nothing: only Linux counts a program's code as memory of each process that runs it.
func unmapCode() {}
