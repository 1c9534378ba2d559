// Package top has amux top, the dashboard.
//
// A model of bubbletea holds what is on screen. Once a second, while the last look is over,
// a look reads the records of the live runs, and of the rows on screen what they do now: it
// asks no server, so that a server that dies does not matter. What a person answers goes to
// the run as from any other command.
package top

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
)

// Options are what amux top needs.
type Options struct {
	IO   *iostreams.IO
	Env  []string
	Host func() (app.Host, error)
	Runs Runs
	Fits func(s *app.Selection) (func(host.RunInfo) bool, error)

	Selection app.Selection
}

// Runs lists the runs.
type Runs interface {
	SelectLive(s *app.Selection) ([]host.RunInfo, error)
	RecoverAll(h app.Host)
}

// NewCmd makes amux top.
func NewCmd(a *app.App) *cobra.Command {
	o := &Options{IO: a.IO, Env: a.Env, Host: a.Opener.ForRuns, Runs: a.Runs, Fits: func(s *app.Selection) (func(host.RunInfo) bool, error) { return s.Compile(a.Process) }}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch all runs at once",
		Long: `Watch all runs at once: what each does now, which of them wait for you, what the last
ones cost. Enter shows the output of a run and what it asks; there y, a and n answer. The
keys are on the last line. Runs are read from their records once a second.`,
		Example: "  amux top\n  amux top --tag nightly",
		Args:    app.ExactArgs(),
		RunE:    app.Command(func(*cobra.Command, []string) error { return top(o) }),
	}
	o.Selection.AddFlags(cmd.Flags())
	return cmd
}

func top(o *Options) error {
	if !o.IO.InTTY || o.IO.Terminal == nil || dumb(o.Env) {
		return app.Usagef("amux top needs a terminal that can move its cursor").WithHint("without one: amux ps, amux ps --json")
	}
	fits, err := o.Fits(&o.Selection)
	if err != nil {
		return err
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	first, err := o.Runs.SelectLive(&o.Selection)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &records{host: h, fits: fits, recover: func() { o.Runs.RecoverAll(h) }, ctx: ctx}
	ended, err := r.ended()
	if err != nil {
		return err
	}
	m := newModel(r, append(first, ended...), o.IO.Color)
	_, err = tea.NewProgram(m, tea.WithInput(o.IO.In), tea.WithOutput(o.IO.Terminal), tea.WithEnvironment(o.Env), tea.WithFPS(20)).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return app.ExitError(130)
	}
	return err
}

// dumb says that the terminal shows text alone.
func dumb(env []string) bool {
	term := ""
	for _, v := range env {
		if len(v) >= 5 && v[:5] == "TERM=" {
			term = v[5:]
		}
	}
	return term == "dumb"
}
