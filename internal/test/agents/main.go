//go:build unix

package agents

import (
	"fmt"
	"os"
	"syscall"
)

// castArg is the first argument of a process that is one of the cast.
const castArg = "amux-cast"

// Main does not return in a process that was started as one of the cast.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != castArg {
		return
	}
	args := os.Args[3:]
	switch os.Args[2] {
	case "agent":
		// Not os.Exit: with the race detector that sleeps for a second.
		syscall.Exit(runAgent(args))
	case "plugin":
		servePlugin(args[0], Trouble(args[1]))
	case "shim":
		os.Exit(runShim(args))
	case "serve":
		os.Exit(runServer())
	case "host":
		os.Exit(runHost(args[0]))
	default:
		fmt.Fprintln(os.Stderr, "no such role:", os.Args[2])
		os.Exit(2)
	}
	os.Exit(0)
}

// self is the test's executable.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}
