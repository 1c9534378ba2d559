//go:build linux || darwin

// Amux-sandbox puts the agent of one run into a sandbox that bubblewrap makes, and is the
// way out of it. It is the run's leader in two places:
//
//	amux-sandbox around [--socket PATH --allow HOST…] -- bwrap ARGUMENTS…
//	amux-sandbox within [--proxy PATH --local PORT…] -- PROGRAM ARGUMENTS…
//
// around stays outside. It starts bubblewrap, lets connections through to the hosts that
// are allowed, and ends the sandbox when its own parent ends, however that comes. Signals
// that are meant for the agent do not end it or bubblewrap: with them the kernel would end
// the agent at once.
//
// within is the first program inside. It gives the agent its signals back and becomes the
// agent; where there is a way out, it starts the agent instead and carries its connections
// to around.
//
// On macOS there is around alone: it starts sandbox-exec, which becomes the agent, and tells
// it the port at which the way out listens.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// everybody are the signals that each process of a run gets.
var everybody = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// leaders are the signals that the run's leader gets, for its agent.
var leaders = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

func init() { runtime.LockOSThread() } // bubblewrap ends with the thread that has started it

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "around":
			os.Exit(around(os.Args[2:]))
		case "within":
			os.Exit(within(os.Args[2:]))
		}
	}
	fmt.Fprintln(os.Stderr, "amux-sandbox is started by amux; see: amux run --help")
	os.Exit(2)
}

// hand gives the agent the signals that are meant for it.
func hand(caught <-chan os.Signal, agent *os.Process) {
	for sig := range caught {
		if slices.Contains(leaders, sig) && sig != syscall.SIGWINCH { // which a terminal gives to both
			_ = agent.Signal(sig)
		}
	}
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// parse reads flags and the command behind them.
func parse(flags *flag.FlagSet, args []string) (command []string, ok bool) {
	if err := flags.Parse(args); err != nil {
		return nil, false
	}
	if flags.NArg() == 0 {
		say("no command")
		return nil, false
	}
	return flags.Args(), true
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "amux-sandbox: "+format+"\n", args...) }
