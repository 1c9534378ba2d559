// Amux-far is amux's hand at another place. It is put there once, and started by ssh or by
// whatever else reaches the place, for two things: to answer what a host must know before it
// can start a run there, and to be the far end of the link to a run's shim. It speaks on stdin
// and stdout, and ends with them.
package main

import (
	"fmt"
	"os"

	"github.com/amux-dev/amux/internal/place"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 1 && args[0] == place.ModeServe:
		greet()
		err = serve(os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == place.ModeAttach:
		greet()
		err = attach(os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == modeEnv:
		err = printEnv(os.Stdout)
	case len(args) == 2 && args[0] == "install":
		var self string
		if self, err = os.Executable(); err == nil {
			err = place.Unpack(self, args[1])
		}
	default:
		fmt.Fprintln(os.Stderr, "amux-far serves amux at another place and is started by it; see: amux place --help")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "amux-far:", err)
		os.Exit(1)
	}
}

// greet ends the line that a login may have begun, and says who speaks from here on.
func greet() { fmt.Printf("\n%s\n", place.Greeting) }
