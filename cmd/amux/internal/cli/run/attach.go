package run

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/keys"
	"github.com/amux-dev/amux/pluginapi"
)

// AttachOptions are what amux attach needs.
type AttachOptions struct {
	Process *app.Process
	Print   *app.Printer
	Config  *app.Config
	Runs    *app.Runs

	Run       string
	ReadOnly  bool
	Steal     bool
	Plain     bool
	DetachKey detachKey
}

// NewCmdAttach makes amux attach.
func NewCmdAttach(a *app.App) *cobra.Command {
	o := &AttachOptions{Process: a.Process, Print: a.Print, Config: a.Config, Runs: a.Runs, DetachKey: "C-\\"}
	cmd := &cobra.Command{
		Use:   "attach [RUN]",
		Short: "Attach to a run",
		Long: `Attach to a run as if it had been started in this terminal. amux shows what the run does
and did, asks here what the agent asks, and sends other lines as prompts if the run is
a conversation; /help lists amux's own commands. The line ~. leaves, and so do Ctrl-D and
Ctrl-C.

A run that was started with --pty shows its terminal: it gets your keys, and the size of
your terminal. Ctrl-\ leaves it.

The run goes on in any case, and you can attach again. Any number of people may watch.
One of them types, until 30 s after the last key; --steal takes over.`,
		Example: `  amux attach 86CCFA
  amux attach nightly --read-only
  amux attach 86CCFA --steal`,
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: a.Runs.Of(app.IsLive, func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return attach(o)
		}),
	}
	cmd.Flags().BoolVar(&o.ReadOnly, "read-only", false, "only watch")
	cmd.Flags().BoolVar(&o.Steal, "steal", false, "take over typing from anybody else")
	cmd.Flags().BoolVar(&o.Plain, "plain", false, "show the agent's text as it is, not as Markdown")
	cmd.Flags().Var(&o.DetachKey, "detach-key", "the `KEY` that leaves a terminal: C- and a letter")
	return cmd
}

func attach(o *AttachOptions) error {
	if o.ReadOnly && o.Steal {
		return app.Usagef("--read-only cannot be combined with --steal")
	}
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	streams := o.Process.IO
	w := &writer{run: run, holder: ulid.Make().String(), readOnly: o.ReadOnly}
	if err := w.begin(o.Steal); err != nil && !streams.InTTY {
		return err // the lines of a pipe would go nowhere
	}
	defer w.end()
	if !onTerminal(run) {
		return attachLines(o, run, w)
	}
	if !streams.InTTY || !streams.OutTTY {
		return app.Usagef("run %s has a terminal, so amux attach requires one on stdin and stdout", o.Run).
			WithHint("see: amux logs -f %[1]s; amux screen %[1]s", o.Run)
	}
	return attachTerminal(o, run, w)
}

// onTerminal reports whether the run's agent has one, or will.
func onTerminal(run app.Recorded) bool {
	for _, err := range run.Terminal(context.Background(), false) {
		return !errors.Is(err, pluginapi.CodeCapability)
	}
	return false
}

// leaseEvery is how often a writer renews the lease.
const leaseEvery = time.Second

// writer is the right to type of an attached terminal. It belongs to the one that typed
// last for host.LeaseTime, then to nobody.
type writer struct {
	run      app.Recorded
	holder   string
	readOnly bool
	next     time.Time // when the lease is renewed
	had      bool
}

// begin takes the right. It fails if somebody else has it.
func (w *writer) begin(steal bool) error {
	if w.readOnly {
		return nil
	}
	err := w.run.Lease(context.Background(), w.holder, steal)
	if errors.Is(err, pluginapi.CodeInvalidTransition) {
		return pluginapi.AsError(err).WithHint("take over with amux attach --steal, or watch with --read-only")
	}
	w.had, w.next = true, time.Now().Add(leaseEvery) // any other error will show when something is typed
	return nil
}

// may reports whether this terminal may type now.
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

func (k *detachKey) Type() string { return "KEY" }

func (k *detachKey) Set(text string) error {
	if code, ok := keys.Lookup(text, false); !ok || len(code) != 1 || code[0] >= 0x20 {
		return app.Usagef("expected a control character, for example C-\\ or C-]")
	}
	*k = detachKey(text)
	return nil
}

// code is what the key sends.
func (k detachKey) code() byte {
	code, _ := keys.Lookup(string(k), false)
	return code[0]
}
