package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
)

// Trust is what a command needs that installs what others have made: the flags, and the
// questions to a person.
type Trust struct {
	Print    *app.Printer
	Config   *app.Config
	Attended func() bool
	Confirm  func(question string) bool

	Require        string
	TakeOver       []string
	AcceptSigner   bool
	AllowDowngrade bool
	NoExec         bool
	DryRun         bool
	JSON           bool
}

func newTrust(a *app.App) Trust {
	return Trust{Print: a.Print, Config: a.Config, Attended: a.Attended, Confirm: a.Confirm}
}

func (t *Trust) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.Require, "require", "", "what must vouch for it: `signature`, checksum or none")
	app.AddRepeated(flags, &t.TakeOver, "take-over", "", "let it serve the agent `ID` in the place of another plugin (repeatable)")
	flags.BoolVar(&t.AcceptSigner, "accept-signer", false, "accept another signer than before")
	flags.BoolVar(&t.AllowDowngrade, "allow-downgrade", false, "accept an older version, or an older index of a mirror")
	flags.BoolVar(&t.NoExec, "no-exec", false, "do not run the plugin to compare its description")
	flags.BoolVar(&t.DryRun, "dry-run", false, "check everything, change nothing")
	flags.BoolVar(&t.JSON, "json", false, "print JSON")
}

// request is what an installer is asked to do.
func (t *Trust) request() (install.Request, error) {
	set, err := t.Config.User()
	if err != nil {
		return install.Request{}, err
	}
	require := t.Require
	if require == "" {
		require = set.Require
	}
	switch install.Require(require) {
	case install.RequireDefault, install.RequireSignature, install.RequireChecksum, install.RequireNone:
	default:
		return install.Request{}, app.Usagef("invalid --require %q: expected signature, checksum or none", require)
	}
	req := install.Request{
		Require: install.Require(require), TakeOver: t.TakeOver, AcceptSigner: t.AcceptSigner,
		AllowDowngrade: t.AllowDowngrade, NoExec: t.NoExec, DryRun: t.DryRun,
	}
	if t.Attended() && !t.JSON {
		req.Ask, req.AskTakeOver = t.ask, t.askTakeOver
	}
	return req, nil
}

// ask shows what a person must compare, and asks.
func (t *Trust) ask(q install.Question) bool {
	t.Print.Notef("plugin %s %s from %s", q.Name, q.Version, q.Source)
	t.Print.Notef("  sha256 %s", q.SHA256)
	if q.Signer != "" {
		t.Print.Notef("  signed by the key %s, which you do not trust yet", q.Signer)
	} else {
		t.Print.Notef("  not signed")
	}
	t.Print.Notef("  it will run with your rights")
	return t.Confirm("amux: install it?")
}

// askTakeOver asks whether a plugin may serve another plugin's agent.
func (t *Trust) askTakeOver(q install.TakeOver) bool {
	kind := "plugin"
	if q.Bundled {
		kind = "bundled plugin"
	}
	t.Print.Notef("plugin %s %s declares the agent %s, which the %s %s serves", q.Name, q.Version, q.Agent, kind, q.From)
	return t.Confirm(fmt.Sprintf("amux: let %s serve it from now on?", q.Name))
}

// report says what an installation did.
func (t *Trust) report(r *install.Result) {
	for _, w := range r.Warnings {
		t.Print.Warnf("%s", w)
	}
	did := "installed"
	switch {
	case r.Unchanged:
		t.Print.Notef("%s %s is already installed, %s", r.Name, r.Version, r.Trust)
		return
	case t.DryRun:
		did = "would install"
	case strings.HasPrefix(r.Source, "dir:"):
		t.Print.Notef("linked %s %s to %s, %s", r.Name, r.Version, r.Dir, r.Trust)
		return
	}
	was := ""
	if r.Previous != "" && r.Previous != r.Version {
		was = " (was " + r.Previous + ")"
	}
	t.Print.Notef("%s %s %s%s, %s", did, r.Name, r.Version, was, r.Trust)
}

// printResults prints JSON where it is asked for, also after an error.
func (t *Trust) printResults(results []*install.Result, err error) error {
	if t.JSON {
		if printErr := t.Print.JSON(results); err == nil {
			err = printErr
		}
	}
	return err
}
