// Amux-shim supervises one run: it owns the agent's stdio, its process tree and the
// journal. The host starts it with the run's directory as its argument and the
// launch connection as file descriptor 3; on Windows that is an inherited handle,
// whose number is a second argument. It links neither gRPC nor cobra and is small on
// purpose: there is one for each run.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/startup"
	"github.com/amux-dev/amux/internal/vt"
)

func main() {
	if len(os.Args) != 1+arguments {
		fmt.Fprintln(os.Stderr, "amux-shim supervises a run of amux and is started by it; see: amux --help")
		os.Exit(2)
	}
	go settle()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "amux-shim:", err)
		os.Exit(1)
	}
}

// settle makes the process as small as it may be until the run ends.
func settle() {
	time.Sleep(settled)
	endSpareThreads()
	startup.LetGoOfCode()
	endSpareThreads() // of a busy system that answered late what LetGoOfCode asks
}

// settled is when what the start has to do at once is over.
const settled = time.Second

func answerer(cols, rows int) shim.Answerer { return vt.New(cols, rows) }
