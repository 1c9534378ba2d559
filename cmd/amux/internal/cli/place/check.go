package place

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
)

func newCmdCheck(o *Options) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "check PLACE",
		Short: "Connect to a place and say what is there",
		Long: `Connect to a place, put amux's programs there if they are missing, and say what system it
is, which agents are in the PATH of a login there, and which runs have something there.`,
		Example: "  amux place check ssh:build-box\n  amux place check box --json | jq -r '.agents[]'",
		Args:    app.ExactArgs("PLACE"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			h, err := o.Host()
			if err != nil {
				return err
			}
			info, err := h.Places().Check(context.Background(), args[0])
			if err != nil {
				return err
			}
			if json {
				return o.Print.JSON(info)
			}
			for _, note := range info.Notes {
				o.Print.Warnf("%s", render.String(note))
			}
			agents := "none"
			if len(info.Agents) > 0 {
				agents = strings.Join(info.Agents, ", ")
			}
			rows := [][]string{{"place", info.Name + " (" + info.Is + ")"}, {"system", info.System}, {"home", info.Home}}
			if info.Folder != "" {
				rows = append(rows, []string{"folder", info.Folder})
			}
			rows = append(rows, []string{"agents", agents})
			live, left := 0, 0
			for _, r := range info.Runs {
				if r.Lives {
					live++
				} else {
					left++
				}
			}
			rows = append(rows, []string{"runs", render.Plural(live, "run") + " at work, " + render.Plural(left, "ended run")})
			for i := range rows {
				rows[i][1] = render.String(rows[i][1])
			}
			o.Print.Table(rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print JSON")
	return cmd
}
