package cli

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
)

func newPluginPrune(s *session) *cobra.Command {
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the versions of plugins that are not active",
		Long: `Remove the versions of plugins that neither your lock nor that of the project here
names. Runs that use one go on; there is no rollback to it any more.`,
		Args: exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			keep := &install.Lock{}
			if file, err := s.projectLock(); err != nil {
				return err
			} else if file != "" {
				if keep, err = install.ReadProjectLock(file); err != nil {
					return err
				}
			}
			unused, err := in.Prune(keep, dry)
			if err == nil {
				err = s.removeCopies()
			}
			if err != nil {
				return err
			}
			if asJSON {
				return s.printJSON(append([]install.Unused{}, unused...))
			}
			var size int64
			for _, u := range unused {
				size += u.Size
				s.errf("  %s %s", u.Name, u.Version)
			}
			did := "removed"
			if dry {
				did = "would remove"
			}
			s.errf("%s %s, %s bytes", did, plural(len(unused), "version"), render.Number(size))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
