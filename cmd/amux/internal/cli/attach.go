package cli

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/pluginapi"
)

func newAttach(s *session) *cobra.Command {
	detach := detachKey("C-\\")
	var readOnly, steal bool
	cmd := &cobra.Command{
		Use:   "attach RUN",
		Short: "Be at a run, as if it had been started here",
		Long: `Be at a run, as if it had been started here. What it does and has done is shown,
what it asks is asked here, and lines that answer nothing are prompts, where the run
is a conversation. The line ~. leaves, and so do Ctrl-D and Ctrl-C.

A run that was started with --pty is shown as its terminal: keys go to it, and it
gets the size of yours. Ctrl-\ leaves it.

The run goes on in any case, and can be attached to again. Any number may look on;
one of them types, for 30 s from the last time: --steal takes over.`,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if readOnly && steal {
				return usage("--read-only and --steal exclude each other")
			}
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			w := &writer{run: run, holder: ulid.Make().String(), readOnly: readOnly}
			if err := w.begin(steal); err != nil && !s.app.IO.InTTY {
				return err // what a pipe has to say would go nowhere
			}
			defer w.end()
			if !onTerminal(run) {
				return s.attachLines(run, w)
			}
			if !s.app.IO.InTTY || !s.app.IO.OutTTY {
				return usage("attach needs a terminal on stdin and stdout, for run %s has one", args[0]).
					WithHint("see: amux logs -f %[1]s; amux screen %[1]s", args[0])
			}
			return s.attachTerminal(run, w, detach)
		}),
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "only look")
	cmd.Flags().BoolVar(&steal, "steal", false, "be the one who types, whoever is now")
	cmd.Flags().Var(&detach, "detach-key", "the `key` that leaves a terminal, C- and a letter")
	return cmd
}

// onTerminal reports whether the run's agent has one, or will.
func onTerminal(run Recorded) bool {
	for _, err := range run.Terminal(context.Background(), false) {
		return !errors.Is(err, pluginapi.CodeCapability)
	}
	return false
}

// leaseEvery is how often who types asks for the lease.
const leaseEvery = time.Second

// writer is the right to type of somebody who is attached. It is theirs who typed
// last, for as long as host.LeaseTime; then anybody's.
type writer struct {
	run      Recorded
	holder   string
	readOnly bool
	next     time.Time // when it is to be asked for again
	had      bool
}

// begin takes the right. An error says that it is somebody else's.
func (w *writer) begin(steal bool) error {
	if w.readOnly {
		return nil
	}
	err := w.run.Lease(context.Background(), w.holder, steal)
	if errors.Is(err, pluginapi.CodeInvalidTransition) {
		return pluginapi.AsError(err).WithHint("amux attach --steal takes over; --read-only only looks")
	}
	w.had, w.next = true, time.Now().Add(leaseEvery) // what else is wrong, the typing will meet
	return nil
}

// may reports whether what is typed now counts.
func (w *writer) may() bool {
	if w.readOnly {
		return false
	}
	if !w.had || time.Now().After(w.next) {
		w.had = w.begin(false) == nil
	}
	return w.had
}

func (w *writer) end() {
	if w.had {
		_ = w.run.GiveBack(context.Background(), w.holder) // it may have ended
	}
}

// detachKey is a flag that takes a control character.
type detachKey string

func (k *detachKey) String() string { return string(*k) }

func (k *detachKey) Type() string { return "key" }

func (k *detachKey) Set(text string) error {
	if code, ok := keyOf(text, false); !ok || len(code) != 1 || code[0] >= 0x20 {
		return usage("want a control character, for example C-\\ or C-]")
	}
	*k = detachKey(text)
	return nil
}

// code is what the key sends.
func (k detachKey) code() byte {
	code, _ := keyOf(string(k), false)
	return code[0]
}
