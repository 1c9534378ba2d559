//go:build !linux

// Agent is the benchmarks' claude, which runs where they do: on Linux.
package main

import "os"

func main() { os.Exit(2) }
