package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

func newPluginInfo(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "info PLUGIN",
		Short:             "Say what a plugin is, where it came from and what it can do; starts nothing",
		Args:              exactly("a plugin"),
		ValidArgsFunction: s.completePlugin,
		RunE: command(func(_ *cobra.Command, args []string) error {
			r, err := s.registry(false)
			if err != nil {
				return err
			}
			plugins := r.List()
			for _, p := range plugins {
				if p.Name == args[0] {
					return s.pluginInfo(p, asJSON)
				}
			}
			return s.notInstalled(args[0], plugins)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// pluginInfo prints a plugin. What cannot be read is left out.
func (s *session) pluginInfo(p registry.Plugin, asJSON bool) error {
	in, err := s.installer("")
	if err != nil {
		return err
	}
	var manifest *install.Manifest
	if data, err := foreign.Read(filepath.Join(p.Dir, install.ManifestName), foreign.Rule{Limit: maxConfigFile}); err == nil {
		manifest, _, _ = install.ParseManifest(install.ManifestName, data)
	}
	var receipt *install.Receipt
	var entry *install.Locked
	if (p.Origin == registry.OriginUser || p.Origin == registry.OriginProject) && !p.Linked {
		receipt, _, _ = in.Installed(p.Name, p.Version)
	}
	if lock, err := install.ReadLock(in.LockFile()); err == nil && p.Origin == registry.OriginUser {
		entry = lock.Get(p.Name)
	}
	var declared []string
	if manifest != nil {
		declared = manifest.Process.Env
	}
	isolation := host.PluginIsolation(s.app.Env, declared)
	if asJSON {
		return s.printJSON(struct {
			pluginJSON
			Manifest   *install.Manifest `json:"manifest"`
			Receipt    *install.Receipt  `json:"receipt"`
			Constraint string            `json:"constraint,omitempty"`
			Previous   string            `json:"previous,omitempty"`
			Isolation  host.Isolation    `json:"isolation"`
		}{jsonOfPlugin(p), manifest, receipt, constraintOf(entry), previousOf(entry), isolation})
	}
	out := s.app.IO.Out
	var rows [][]string
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{"  " + what, render.String(text)})
		}
	}
	add("trust", p.Trust)
	add("from", string(p.Origin)+", "+p.Source)
	if p.Err != nil {
		add("broken", p.Err.Error())
	}
	if manifest != nil {
		add("license", manifest.License)
		add("homepage", manifest.Homepage)
		add("sees also", strings.Join(manifest.Process.Env, ", "))
	}
	if entry != nil && entry.Link == "" {
		upgrades := constraintOf(entry)
		if upgrades == "" {
			upgrades = "none, it is pinned"
		}
		add("upgrades", upgrades)
		add("rollback to", entry.Previous)
	}
	if receipt != nil {
		add("installed", receipt.Time.Format(time.RFC3339)+" by amux "+receipt.Amux)
		add("archive", receipt.Archive+", sha256 "+receipt.ArchiveSHA256)
		add("files", receipt.H1)
	}
	add("folder", p.Dir)
	rows = append(rows, []string{"isolation", "of its process, on this machine"})
	for _, row := range isolationRows(isolation) {
		add(row[0], row[1])
	}
	title := strings.TrimSpace(p.Name + " " + p.Version)
	if manifest != nil {
		title += ": " + manifest.Summary
	}
	s.outf("%s\n", title)
	for _, a := range p.Description.GetAgents() {
		rows = append(rows, []string{"agent " + a.Id, render.String(a.Summary)})
		add("runs", a.Program)
		add("platforms", strings.Join(a.Platforms, ", "))
		add("can", strings.Join(capabilities(a.Capabilities), ", "))
	}
	table(out, rows)
	return nil
}

// isolationRows say what holds a plugin's process within bounds, and what does not.
func isolationRows(i host.Isolation) [][2]string {
	memory, files := "not bounded on this system", "not bounded on this system"
	if i.Memory > 0 {
		memory = fmt.Sprintf("%d GiB; one that holds more is ended", i.Memory>>30)
	}
	if i.Descriptors > 0 {
		files = fmt.Sprintf("at most %d", i.Descriptors)
	}
	privileges := "those that you have, and what it can gain"
	if i.NoNewPrivileges {
		privileges = "no new ones (no_new_privs)"
	}
	writes := "wherever you may: this kernel does not offer Landlock"
	if i.Landlock > 0 {
		writes = fmt.Sprintf("to its own folder only (Landlock ABI %d)", i.Landlock)
		if i.Landlock < 3 {
			writes += ", but it can empty your files: that takes ABI 3"
		}
	}
	signals := "to whatever you may signal"
	if i.Signals {
		signals = "to its own processes only (Landlock)"
	}
	others := "readable in /proc, with the environment of amux: this kernel does not offer Landlock"
	switch {
	case i.Environments:
		others = "their environment and memory are hidden (Landlock)"
	case i.Memory == 0: // no /proc
		others = "what you may read of them"
	}
	return [][2]string{
		{"environment", strings.Join(i.Environment, ", ")},
		{"folder, stdin", "a private folder that is removed with it, no stdin"},
		{"memory", memory},
		{"descriptors", files},
		{"privileges", privileges},
		{"writes", writes},
		{"signals", signals},
		{"other processes", others},
		{"reads, network", "what you may"},
	}
}

func constraintOf(entry *install.Locked) string {
	if entry == nil {
		return ""
	}
	return entry.Constraint
}

func previousOf(entry *install.Locked) string {
	if entry == nil {
		return ""
	}
	return entry.Previous
}
