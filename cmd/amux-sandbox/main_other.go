//go:build !linux

// Amux-sandbox is for Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "amux-sandbox is for Linux")
	os.Exit(2)
}
