package place

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func newCmdTest(o *Options) *cobra.Command {
	var options []string
	cmd := &cobra.Command{
		Use:   "test PROGRAM",
		Short: "Test a helper program against the contract of places",
		Long: `Test whether a helper program does what amux asks of it: arguments, stdin, stdout and
exit codes pass as they are, two commands run at a time, destroy removes what provision
makes.
The contract is in docs/places/helper.md. It prints a line for each check, and ends with
an error if one fails.`,
		Example: "  amux place test ./amux-place-lima --option machine=default",
		Args:    app.ExactArgs("PROGRAM"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			at := host.Place{Program: o.Abs(args[0]), Options: map[string]string{}}
			for _, text := range options {
				name, value, ok := strings.Cut(text, "=")
				if !ok || name == "" {
					return app.Usagef("invalid --option %q: expected NAME=VALUE", text)
				}
				at.Options[name] = value
			}
			h, err := o.Host()
			if err != nil {
				return err
			}
			failed := 0
			err = h.Places().Test(context.Background(), at, func(c host.PlaceCheck) {
				if c.Err == nil {
					o.Print.Outf("ok    %s\n", c.Name)
					return
				}
				failed++
				o.Print.Outf("FAIL  %s: %s\n", c.Name, render.String(c.Err.Error()))
			})
			if err == nil && failed > 0 {
				err = pluginapi.Errorf(pluginapi.CodeValidation, "%s does not do all that a place must: %s failed", args[0], render.Plural(failed, "check")).
					WithHint("see docs/places/helper.md")
			}
			return err
		}),
	}
	app.AddRepeated(cmd.Flags(), &options, "option", "", "tell it this `NAME=VALUE`, as [places.NAME.options] does (repeatable)")
	return cmd
}
