package plugin

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// InfoOptions are what amux plugin info needs.
type InfoOptions struct {
	Print   *app.Printer
	Plugins *app.Plugins
	Env     []string

	Plugin string
	JSON   bool
}

// NewCmdInfo makes amux plugin info.
func NewCmdInfo(a *app.App) *cobra.Command {
	o := &InfoOptions{Print: a.Print, Plugins: a.Plugins, Env: a.Env}
	cmd := &cobra.Command{
		Use:   "info PLUGIN",
		Short: "Show plugin details",
		Long: `Show what a plugin is: its agents, where it came from, how far it is trusted, and what
its process may do on this machine. This starts nothing.`,
		Example:           "  amux plugin info claude\n  amux plugin info acme --json | jq .isolation",
		Args:              app.ExactArgs("a plugin"),
		ValidArgsFunction: a.Plugins.Complete,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Plugin = args[0]
			return info(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func info(o *InfoOptions) error {
	r, err := o.Plugins.Registry(false)
	if err != nil {
		return err
	}
	plugins := r.List()
	for _, p := range plugins {
		if p.Name == o.Plugin {
			return printInfo(o, p)
		}
	}
	return app.NotInstalled(o.Plugin, plugins)
}

// printInfo prints a plugin without the parts that cannot be read.
func printInfo(o *InfoOptions, p registry.Plugin) error {
	in, err := o.Plugins.Installer("")
	if err != nil {
		return err
	}
	var manifest *install.Manifest
	if data, err := foreign.Read(filepath.Join(p.Dir, install.ManifestName), foreign.Rule{Limit: app.MaxConfigFile}); err == nil {
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
	isolation := host.PluginIsolation(o.Env, declared)
	if o.JSON {
		return o.Print.JSON(struct {
			pluginJSON
			Manifest   *install.Manifest `json:"manifest"`
			Receipt    *install.Receipt  `json:"receipt"`
			Constraint string            `json:"constraint,omitempty"`
			Previous   string            `json:"previous,omitempty"`
			Isolation  host.Isolation    `json:"isolation"`
		}{jsonOfPlugin(p), manifest, receipt, constraintOf(entry), previousOf(entry), isolation})
	}
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
			upgrades = "none: pinned"
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
	rows = append(rows, []string{"isolation", "of its process on this machine"})
	for _, row := range isolationRows(isolation) {
		add(row[0], row[1])
	}
	title := strings.TrimSpace(p.Name + " " + p.Version)
	if manifest != nil {
		title += ": " + manifest.Summary
	}
	o.Print.Outf("%s\n", title)
	for _, a := range p.Description.GetAgents() {
		rows = append(rows, []string{"agent " + a.Id, render.String(a.Summary)})
		add("runs", a.Program)
		add("platforms", strings.Join(a.Platforms, ", "))
		add("can", strings.Join(render.Capabilities(a.Capabilities), ", "))
	}
	o.Print.Table(rows)
	return nil
}

// isolationRows say what limits a plugin's process, and what does not.
func isolationRows(i host.Isolation) [][2]string {
	memory, files := "not limited on this system", "not limited on this system"
	if i.Memory > 0 {
		memory = fmt.Sprintf("%d GiB; a process with more is killed", i.Memory>>30)
	}
	if i.Descriptors > 0 {
		files = fmt.Sprintf("at most %d", i.Descriptors)
	}
	privileges := "yours, and what it can gain"
	if i.NoNewPrivileges {
		privileges = "yours, and no new ones (no_new_privs)"
	}
	writes := "wherever you may: this kernel has no Landlock"
	if i.Landlock > 0 {
		writes = fmt.Sprintf("to its own folder only (Landlock ABI %d)", i.Landlock)
		if i.Landlock < 3 {
			writes += ", but it can truncate your files: that needs ABI 3"
		}
	}
	signals := "to whatever you may signal"
	if i.Signals {
		signals = "to its own processes only (Landlock)"
	}
	others := "readable in /proc, with the environment of amux: this kernel has no Landlock"
	switch {
	case i.Environments:
		others = "their environment and memory are hidden (Landlock)"
	case i.Memory == 0: // no /proc
		others = "what you may read of them"
	}
	return [][2]string{
		{"environment", strings.Join(i.Environment, ", ")},
		{"folder, stdin", "a private folder, removed when it ends; no stdin"},
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
