//go:build !linux && !darwin

// Amux-sandbox is for Linux and macOS.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "amux-sandbox is for Linux and macOS")
	os.Exit(2)
}
