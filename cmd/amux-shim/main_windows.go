// Amux-shim keeps one run. It is not there for Windows yet.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "amux-shim: amux cannot run agents on Windows yet")
	os.Exit(1)
}
