//go:build !linux

package main

// endSpareThreads does nothing: the threads are not known here.
func endSpareThreads() {}
