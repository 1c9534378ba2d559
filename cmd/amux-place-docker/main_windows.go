package main

import (
	"fmt"
	"os"
)

// main refuses: amux has no runs at other places on Windows.
func main() {
	fmt.Fprintln(os.Stderr, "runs in a container need Linux or macOS here")
	os.Exit(1)
}
