package place

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

func newCmdClean(o *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "clean PLACE",
		Short: "Remove what ended runs have left at a place",
		Long: `Remove from a place what runs have left there that have ended: usually nothing, for each
run removes its own. A run that is at work is left alone, and so is one whose end this
machine has yet to fetch. It prints the ids.`,
		Example: "  amux place clean ssh:build-box",
		Args:    app.ExactArgs("PLACE"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			h, err := o.Host()
			if err != nil {
				return err
			}
			o.Runs.RecoverAll(h)
			removed, err := h.Places().Clean(context.Background(), args[0])
			for _, id := range removed {
				o.Print.Outf("%s\n", render.String(id))
			}
			if err == nil {
				o.Print.Notef("removed what %s left at %s", render.Plural(len(removed), "run"), args[0])
			}
			return err
		}),
	}
}
