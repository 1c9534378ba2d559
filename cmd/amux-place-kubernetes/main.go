// Amux-place-kubernetes has runs be in a Kubernetes cluster: it is a helper program on the four
// verbs of docs/places.md, and makes a Job for each run. It asks for everything by the user's own
// kubectl, so contexts, credentials and proxies are those of its settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/amux-dev/amux/internal/sys/printable"
)

// goneCode says that what was made for the run is there no more, or that nothing is there
// without a run.
const goneCode = 97

// goneError is an error for goneCode.
type goneError struct{ msg string }

func (e *goneError) Error() string { return e.msg }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, printable.Line(err.Error()))
	if _, gone := errors.AsType[*goneError](err); gone {
		os.Exit(goneCode)
	}
	os.Exit(1)
}

var runID = regexp.MustCompile(`^[0-9A-Z]{26}$`)

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("this is started by amux; see docs/places.md")
	}
	told, err := readPlace(os.Getenv("AMUX_PLACE"))
	if err != nil {
		return err
	}
	c := cluster{told}
	verb, args := args[0], args[1:]
	if verb == "list" && len(args) == 0 {
		return c.list(ctx)
	}
	if len(args) == 0 || (verb != "exec" || args[0] != "-") && !runID.MatchString(args[0]) {
		return fmt.Errorf("%s needs the id of a run", printable.Line(verb))
	}
	run := args[0]
	switch {
	case verb == "provision" && len(args) == 1:
		return c.provision(ctx, run)
	case verb == "destroy" && len(args) == 1:
		return c.destroy(ctx, run)
	case verb == "exec" && len(args) > 2 && args[1] == "--":
		return c.exec(ctx, run, args[2:])
	}
	return fmt.Errorf("%s is no verb, or has other arguments: provision, exec, destroy, list", printable.Line(verb))
}
