package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginTrust(s *session) *cobra.Command {
	return group("trust", "Say whose signatures count, and for which plugins",
		newPluginTrustAdd(s), newPluginTrustList(s), newPluginTrustRemove(s))
}

func newPluginTrustAdd(s *session) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use:   "add PUBLISHER KEY",
		Short: "Trust a publisher's key",
		Long: `Trust a publisher's minisign key, given as its one line or as the file minisign.pub.
Get it from the publisher by another way than the plugin. It counts for plugins
named as the publisher, PUBLISHER and PUBLISHER-*, if --names says nothing else.`,
		Args: exactly("a publisher", "a key"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			key := args[1]
			if !strings.HasPrefix(key, "RW") {
				data, err := foreign.Read(s.abs(key), foreign.Rule{Limit: maxConfigFile})
				if err != nil {
					return usage("%s is neither a key nor a file with one", key).WithHint("a key is one line: RW… with 56 characters")
				}
				key = string(data)
			}
			if len(names) == 0 {
				names = []string{args[0], args[0] + "-*"}
			}
			in, err := s.installer("")
			if err != nil {
				return err
			}
			if err := in.AddTrust(install.Key{ID: args[0], Key: key, Names: names}); err != nil {
				return err
			}
			s.errf("signatures of %s count for the plugins %s", args[0], strings.Join(names, ", "))
			return nil
		}),
	}
	cmd.Flags().StringSliceVar(&names, "names", nil, "patterns of the plugins that the key may sign, as `acme,acme-*`")
	return cmd
}

func newPluginTrustList(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the trusted keys",
		Args:  exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			keys, err := in.Trust()
			if err != nil {
				return err
			}
			if asJSON {
				return s.printJSON(append([]install.Key{}, keys...))
			}
			rows := [][]string{{"PUBLISHER", "KEY", "ID", "PLUGINS"}}
			for _, k := range keys {
				public, err := install.ParsePublicKey(k.Key)
				if err != nil {
					return pluginapi.AsError(err)
				}
				rows = append(rows, []string{k.ID, k.Key, install.KeyID(public), strings.Join(k.Names, ", ")})
			}
			table(s.app.IO.Out, rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newPluginTrustRemove(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "remove PUBLISHER",
		Short: "Trust a publisher's key no more",
		Long:  "Trust a publisher's key no more. What it has signed stays installed, and amux plugin\nverify says so.",
		Args:  exactly("a publisher"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			if err := in.RemoveTrust(args[0]); err != nil {
				return err
			}
			s.errf("signatures of %s count no more", args[0])
			return nil
		}),
	}
}
