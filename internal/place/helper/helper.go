//go:build unix

// Package helper is what a helper program of a place has in common with others: the verbs of
// docs/places/helper.md on its command line, and one more verb, serve, which lets one process do
// them for many runs.
package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/place/broker"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// GoneCode says that what was made for a run is there no more, or that nothing is there without
// a run.
const GoneCode = 97

// GoneError is an error for GoneCode.
type GoneError struct{ Msg string }

func (e *GoneError) Error() string { return e.Msg }

// Place does what a helper program is asked to.
type Place interface {
	// Provision makes what a run needs; folder is that of a run which works in a folder of this
	// machine, else "". Lines for amux are printed on out. Nothing is left after an error.
	Provision(ctx context.Context, run, folder string, out io.Writer) error
	// Exec runs a command and returns its exit code. run is "" for a look at the place without
	// one. The error is a GoneError if what Provision made is there no more.
	Exec(ctx context.Context, run string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (code int, _ error)
	// Destroy removes what Provision made. It may come twice.
	Destroy(ctx context.Context, run string) error
	// List returns the runs that something was made for.
	List(ctx context.Context) ([]string, error)
}

// Open returns a place for one call, which ends with done. run is the run that the call is about;
// "" for none.
type Open func(run string) (p Place, done func(), _ error)

// Told is what a helper program is told of its place: AMUX_PLACE.
type Told struct {
	Name    string            `json:"name"`
	Owner   string            `json:"owner"`
	Options map[string]string `json:"options"`
}

// ReadTold reads it.
func ReadTold(text string) (told Told, _ error) {
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return told, errors.New("AMUX_PLACE is missing; this is started by amux, see docs/places/helper.md")
	}
	return told, nil
}

// idle is how long nobody may need a program that serves until it ends.
const idle = 10 * time.Second

// Main is the main function of a helper program. open is asked for each call.
func Main(open Open) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if socket := Socket(); socket != "" {
		if err := serve(ctx, socket, open); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(Do(ctx, open, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Socket is the path of this process's socket if it works for many runs; "" if it does what its
// command line says and ends.
func Socket() string {
	if len(os.Args) == 3 && os.Args[1] == "serve" && filepath.IsAbs(os.Args[2]) {
		return os.Args[2]
	}
	return ""
}

// serve does for many callers what they would start this program for.
func serve(ctx context.Context, socket string, open Open) error {
	signal.Ignore(syscall.SIGHUP)
	debug.SetGCPercent(50) // most of its memory is of those that say nothing
	l, err := broker.Inherited()
	if err != nil {
		return fmt.Errorf("this is started by amux: %w", err)
	}
	return broker.Serve(ctx, l, socket, idle, func(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) int {
		return Do(ctx, open, words, stdin, stdout, stderr)
	})
}

// Do does what words say, and returns the exit code.
func Do(ctx context.Context, open Open, words []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	code, err := verb(ctx, open, words, stdin, stdout, stderr)
	if err == nil {
		return code
	}
	fmt.Fprintln(stderr, printable.Line(err.Error()))
	if _, gone := errors.AsType[*GoneError](err); gone {
		return GoneCode
	}
	return 1
}

// RunID is what the id of a run looks like.
var RunID = regexp.MustCompile(`^[0-9A-Z]{26}$`)

func verb(ctx context.Context, open Open, words []string, stdin io.Reader, stdout, stderr io.Writer) (code int, _ error) {
	if len(words) == 0 {
		return 0, errors.New("this is started by amux; see docs/places/helper.md")
	}
	verb, words := words[0], words[1:]
	run := ""
	switch {
	case verb == "list" && len(words) == 0:
	case len(words) > 0 && RunID.MatchString(words[0]):
		run = words[0]
	case len(words) == 0 || verb != "exec" || words[0] != "-":
		return 0, fmt.Errorf("%s needs the id of a run", printable.Line(verb))
	}
	p, done, err := open(run)
	if err != nil {
		return 0, err
	}
	defer done()
	switch {
	case verb == "list":
		runs, err := p.List(ctx)
		for _, run := range runs {
			fmt.Fprintln(stdout, run)
		}
		return 0, err
	case verb == "provision" && len(words) == 1:
		return 0, p.Provision(ctx, run, "", stdout)
	case verb == "provision" && len(words) == 2 && filepath.IsAbs(words[1]):
		return 0, p.Provision(ctx, run, words[1], stdout)
	case verb == "destroy" && len(words) == 1:
		return 0, p.Destroy(ctx, run)
	case verb == "exec" && len(words) > 2 && words[1] == "--":
		return p.Exec(ctx, run, words[2:], stdin, stdout, stderr)
	}
	return 0, fmt.Errorf("%s is no verb, or has other arguments: provision, exec, destroy, list", printable.Line(verb))
}
