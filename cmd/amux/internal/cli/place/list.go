package place

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

func newCmdList(o *Options) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short:   "List the places of config.toml",
		Long:    "List the places of config.toml. It connects to none: amux place check does.",
		Example: "  amux place list\n  amux place list --json | jq -r '.[].name'",
		Args:    app.ExactArgs(),
		RunE: app.Command(func(*cobra.Command, []string) error {
			h, err := o.Host()
			if err != nil {
				return err
			}
			list := h.Places().List()
			if json {
				return o.Print.JSON(list)
			}
			if len(list) == 0 {
				o.Print.Notef("config.toml names no places; any machine that ssh reaches is one: amux place check ssh:HOST")
				return nil
			}
			rows := [][]string{{"NAME", "IS", "FOLDER"}}
			for _, p := range list {
				folder := p.Folder
				if folder == "" {
					folder = "-"
				}
				rows = append(rows, []string{p.Name, p.Is, folder})
			}
			o.Print.Table(rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print JSON")
	return cmd
}
