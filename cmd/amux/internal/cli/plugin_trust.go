package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
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
and agents named as the publisher, PUBLISHER and PUBLISHER-*, if --names says
nothing else; for a publisher that is trusted already it adds --names.`,
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
			s.errf("signatures of %s count for the plugins and agents %s", args[0], strings.Join(names, ", "))
			return nil
		}),
	}
	cmd.Flags().StringSliceVar(&names, "names", nil, "patterns of the plugins that the key may sign and of the agents that they may serve, as `acme,acme-*`")
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
			rows := [][]string{{"PUBLISHER", "KEY", "ID", "PLUGINS AND AGENTS"}}
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
		Long: `Trust a publisher's key no more. New runs with the plugins that it signed are
refused, until the key is trusted again or the plugin is installed by its checksum:
amux plugin install SOURCE --sha256 SUM --accept-signer. Runs that are going on keep
the plugin that they began with until they end; they are named, and amux stop ends
them.`,
		Args: exactly("a publisher"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			r, err := s.registry(false)
			if err != nil {
				return err
			}
			before := r.List()
			if err := in.RemoveTrust(args[0]); err != nil {
				return err
			}
			s.errf("signatures of %s count no more", args[0])
			refused := map[string]bool{}
			for _, p := range before {
				for _, now := range r.List() {
					if now.Name == p.Name && p.Err == nil && now.Err != nil {
						refused[p.Name] = true
						s.errf("plugin %s %s is refused from now on", p.Name, p.Version)
					}
				}
			}
			if len(refused) == 0 {
				return nil
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			runs, err := h.Runs(context.Background())
			if err != nil {
				return err
			}
			for _, run := range runs {
				if run.End == nil && refused[run.Plugin] {
					s.warnf("run %s goes on with plugin %s; to end it: amux stop %s", render.ShortID(run.ID), run.Plugin, render.ShortID(run.ID))
				}
			}
			return nil
		}),
	}
}
