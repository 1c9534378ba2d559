package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// verifyJSON is what was found of one plugin.
type verifyJSON struct {
	Plugin   string            `json:"plugin"`
	Version  string            `json:"version,omitempty"`
	OK       bool              `json:"ok"`
	Trust    string            `json:"trust,omitempty"`
	Problems []install.Problem `json:"problems"`
}

func newPluginVerify(s *session) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [PLUGIN | --all]",
		Short: "Hash a plugin's files anew and hold them against lock and signature; starts nothing",
		Long: `Hash a plugin's files anew, and hold them against what was installed: the receipt,
the lock, the signature and the keys that are trusted now. The exit code is 1 if a
file was modified, is missing or is one too many.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all {
				return usage("amux plugin verify needs a plugin, or --all").WithHint("usage: %s", cmd.UseLine())
			}
			if all && len(args) > 0 {
				return usage("--all is of all plugins, and %q is one", args[0])
			}
			if !all {
				return exactly("a plugin")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: s.completePlugin,
		RunE: command(func(_ *cobra.Command, args []string) error {
			in, err := s.installer("")
			if err != nil {
				return err
			}
			r, err := s.registry(true)
			if err != nil {
				return err
			}
			lock, err := install.ReadLock(in.LockFile())
			if err != nil {
				return err
			}
			plugins := r.List()
			list := []verifyJSON{}
			for _, p := range plugins {
				if all || p.Name == args[0] {
					list = append(list, verifyPlugin(in, r, lock, p))
				}
			}
			if len(list) == 0 && !all {
				return s.notInstalled(args[0], plugins)
			}
			if asJSON {
				err = s.printJSON(list)
			} else {
				s.printVerified(list)
			}
			if err != nil {
				return err
			}
			for _, v := range list {
				if !v.OK {
					return exitError(1)
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every plugin")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verifyPlugin checks what a run would start, and what the user's lock has.
func verifyPlugin(in *install.Installer, r *registry.Registry, lock *install.Lock, p registry.Plugin) verifyJSON {
	v := verifyJSON{Plugin: p.Name, Version: p.Version, Trust: p.Trust, Problems: []install.Problem{}}
	if entry := lock.Get(p.Name); entry != nil && p.Origin == registry.OriginUser {
		_, problems := in.Verify(*entry)
		v.Problems = append(v.Problems, problems...)
	}
	if len(v.Problems) == 0 {
		err := p.Err
		if err == nil {
			_, err = r.Verify(p)
		}
		if e := pluginapi.AsError(err); e != nil {
			v.Problems = append(v.Problems, install.Problem{What: e.Error()})
		}
	}
	v.OK = len(v.Problems) == 0
	return v
}

func (s *session) printVerified(list []verifyJSON) {
	for _, v := range list {
		name := strings.TrimSpace(v.Plugin + " " + v.Version)
		if v.OK {
			s.outf("✓ %s: %s\n", name, v.Trust)
		}
		for _, p := range v.Problems {
			s.outf("✗ %s: %s\n", name, p.String())
		}
	}
}
