// Amux-relay stands here for the shim of a run at another place. The host starts it as it
// starts a shim: with the run's directory as its argument, and the launch connection as file
// descriptor 3. It links neither gRPC nor cobra and is small on purpose: there is one for each
// such run.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 1+arguments {
		fmt.Fprintln(os.Stderr, "amux-relay stands for a run at another place and is started by amux; see: amux place --help")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "amux-relay:", err)
		os.Exit(1)
	}
}
