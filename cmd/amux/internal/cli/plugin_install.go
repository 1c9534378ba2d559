package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
)

func newPluginInstall(s *session) *cobra.Command {
	var f trustFlags
	var sum, mirror string
	var pin, replace bool
	cmd := &cobra.Command{
		Use:   "install SOURCE…",
		Short: "Install plugins",
		Long: `Install plugins. A source is one of

  ./dir                                 a folder with a manifest: linked, for development
  ./dist, ./archive.tar.gz              a release that amux plugin package has made
  https://host/archive.tar.gz#sha256=…  an archive; #sha256 where it is not signed
  gh:owner/repo[@version]               the releases of a repository on GitHub
  name[@version]                        a mirror: --mirror, or sources.toml

What others have made needs a signature by a key you trust (amux plugin trust add),
or a checksum that you give; else you are asked, and where nobody can answer it is
refused. An agent belongs to one plugin: one that declares another's needs --take-over,
one that is named like a bundled plugin --replace. Nothing in a package is run but its plugin with --amux-describe.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("a source")(cmd, args)
			}
			if sum != "" && len(args) > 1 {
				return usage("--sha256 is of one archive, and there are %d sources", len(args))
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			in, err := s.installer(mirror)
			if err != nil {
				return err
			}
			results := []*install.Result{}
			err = s.interruptible(func(ctx context.Context) error {
				return s.each(args, func(source string) error {
					req, err := s.request(&f)
					if err != nil {
						return err
					}
					if req.Place, err = in.Resolve(source, s.app.Cwd); err != nil {
						return err
					}
					if sum != "" {
						if len(sum) != 64 {
							return usage("--sha256 %s: want 64 of 0-9 and a-f", sum)
						}
						req.SHA256 = sum
					}
					req.Pin, req.Replace = pin, replace
					result, err := in.Install(ctx, req)
					if err == nil {
						s.installed(result, f.dryRun)
						results = append(results, result)
					}
					return err
				})
			})
			if f.json {
				if printErr := s.printJSON(results); err == nil {
					err = printErr
				}
			}
			return err
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&sum, "sha256", "", "the checksum that the archive must have, as `SUM`")
	flags.StringVar(&mirror, "mirror", "", "take names from this mirror, a folder or https `ROOT`")
	flags.BoolVar(&pin, "pin", false, "stay at this version: no upgrades")
	flags.BoolVar(&replace, "replace", false, "take the place of a plugin of that name from another source, or that came with amux")
	f.add(flags)
	return cmd
}
