//go:build unix

// Amux-place-kubernetes has runs be in a Kubernetes cluster: it is a helper program on the four
// verbs of docs/places/helper.md, and makes a Job for each run. Clusters, credentials and proxies are
// those of the user's kubeconfig. By a verb of its own, serve, one process is it for many runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/amux-dev/amux/internal/place/broker"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// goneCode says that what was made for the run is there no more, or that nothing is there
// without a run.
const goneCode = 97

// goneError is an error for goneCode.
type goneError struct{ msg string }

func (e *goneError) Error() string { return e.msg }

func main() {
	klog.SetLogger(klog.Logger{}) // stderr is for people
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := readPlace(os.Getenv("AMUX_PLACE"))
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := serve(ctx, os.Args[2], p, err); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var c *cluster
	if err == nil {
		c, err = p.open(onlyRun(os.Args[1:]))
	}
	os.Exit(do(ctx, c, err, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// idle is how long nobody may need it until it ends.
const idle = 10 * time.Second

// serve does for many callers what they would start this program for. The error is what is wrong
// with the place, which each of them is told.
func serve(ctx context.Context, socket string, p place, err error) error {
	signal.Ignore(syscall.SIGHUP)
	debug.SetGCPercent(50) // most of its memory is of those that say nothing
	l, failed := broker.Inherited()
	if failed != nil {
		return fmt.Errorf("this is started by amux: %w", failed)
	}
	now := &newest{place: p}
	return broker.Serve(ctx, l, socket, idle, func(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) int {
		if err != nil {
			return do(ctx, nil, err, words, stdin, stdout, stderr)
		}
		c, done, err := now.open()
		if err == nil {
			defer done()
		}
		return do(ctx, c, err, words, stdin, stdout, stderr)
	})
}

// do does what words say, and returns the exit code. The error is why there is no cluster.
func do(ctx context.Context, c *cluster, err error, words []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	if err == nil {
		code, err = verb(ctx, c, words, stdin, stdout, stderr)
	}
	if err == nil {
		return code
	}
	fmt.Fprintln(stderr, printable.Line(err.Error()))
	if _, gone := errors.AsType[*goneError](err); gone {
		return goneCode
	}
	return 1
}

var runID = regexp.MustCompile(`^[0-9A-Z]{26}$`)

// onlyRun is the run that words are about; "" for none.
func onlyRun(words []string) string {
	if len(words) > 1 && runID.MatchString(words[1]) {
		return words[1]
	}
	return ""
}

func verb(ctx context.Context, c *cluster, words []string, stdin io.Reader, stdout, stderr io.Writer) (code int, _ error) {
	if len(words) == 0 {
		return 0, errors.New("this is started by amux; see docs/places/helper.md")
	}
	verb, words := words[0], words[1:]
	if verb == "list" && len(words) == 0 {
		return 0, c.list(ctx, stdout)
	}
	if len(words) == 0 || (verb != "exec" || words[0] != "-") && !runID.MatchString(words[0]) {
		return 0, fmt.Errorf("%s needs the id of a run", printable.Line(verb))
	}
	run := words[0]
	switch {
	case verb == "provision" && len(words) == 1:
		return 0, c.provision(ctx, run, stdout)
	case verb == "destroy" && len(words) == 1:
		return 0, c.destroy(ctx, run)
	case verb == "exec" && len(words) > 2 && words[1] == "--":
		return c.exec(ctx, run, words[2:], stdin, stdout, stderr)
	}
	return 0, fmt.Errorf("%s is no verb, or has other arguments: provision, exec, destroy, list", printable.Line(verb))
}
