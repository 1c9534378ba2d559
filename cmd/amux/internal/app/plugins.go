package app

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// Plugins finds the user's plugins and changes them.
type Plugins struct {
	process *Process
	config  *Config
	opener  *Opener

	gone []string // hashes of plugins that have left the store
}

// Dir is where plugins are installed.
func (p *Plugins) Dir() (string, error) {
	if dir := p.process.Getenv("AMUX_PLUGIN_DIR"); dir != "" {
		return p.process.Abs(dir), nil
	}
	dir, err := p.config.Dir()
	return filepath.Join(dir, "plugins"), err
}

// Registry finds plugins as the host does. alwaysVerify has it hash their files again.
func (p *Plugins) Registry(alwaysVerify bool) (*registry.Registry, error) {
	o, err := p.opener.Options()
	if err != nil {
		return nil, err
	}
	return registry.New(registry.Options{
		ConfigDir: o.ConfigDir, PluginDir: p.process.Getenv("AMUX_PLUGIN_DIR"), ProjectDir: o.ProjectDir,
		BundledDir: o.BundledDir, BundledHashes: o.BundledHashes, Overrides: o.Plugins,
		AlwaysVerify: alwaysVerify || o.AlwaysVerify, Version: o.Version,
	}), nil
}

// Installer returns what changes the user's plugins. mirror, if not empty, takes the
// place of sources.toml.
func (p *Plugins) Installer(mirror string) (*install.Installer, error) {
	dir, err := p.Dir()
	if err != nil {
		return nil, err
	}
	config, err := p.config.SafeDir()
	if err != nil {
		return nil, err
	}
	if err := safeFolder("plugin folder", dir, "choose another one with AMUX_PLUGIN_DIR"); err != nil {
		return nil, err
	}
	supervision, err := host.Supervision(true)
	if err != nil {
		return nil, err
	}
	o := install.Options{
		Dir: dir, Supervision: supervision, Gone: func(hash string) { p.gone = append(p.gone, hash) },
		BundledDir: p.process.Beside("plugins"), Version: p.process.Version,
		GitHubAPI: p.process.Getenv("GITHUB_API_URL"), GitHubToken: p.process.Getenv("GH_TOKEN"),
	}
	if o.GitHubToken == "" {
		o.GitHubToken = p.process.Getenv("GITHUB_TOKEN")
	}
	if mirror != "" {
		if !install.IsAddress(mirror) {
			mirror = p.process.Abs(mirror)
		}
		if err := install.CheckMirrorRoot(mirror); err != nil {
			return nil, err
		}
		o.Mirrors = []install.Mirror{{Root: mirror}}
	} else if o.Mirrors, err = install.ReadMirrors(filepath.Join(config, install.SourcesName)); err != nil {
		return nil, err
	}
	return install.New(o), nil
}

// RemoveCopies removes the copies that runs were started from of plugins that have left
// the store. A copy that a live run uses stays until amux clean.
func (p *Plugins) RemoveCopies() error {
	if len(p.gone) == 0 {
		return nil
	}
	r, err := p.Registry(false)
	if err != nil {
		return err
	}
	h, err := p.opener.Host()
	if err != nil {
		return err
	}
	runs, err := h.Live(context.Background())
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, run := range runs {
		if run.End == nil {
			used[run.PluginHash] = true
		}
	}
	return r.RemoveCopies(p.gone, func(hash string) bool { return used[hash] })
}

// Complete completes the names of installed plugins.
func (p *Plugins) Complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	in, err := p.Installer("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	lock, err := install.ReadLock(in.LockFile())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return lock.Names(), cobra.ShellCompDirectiveNoFileComp
}

// NotInstalled returns the error for a plugin that is not among those installed.
func NotInstalled(name string, plugins []registry.Plugin) error {
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
	}
	err := pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s is not installed", render.String(name))
	if near := registry.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("see: amux plugin list")
}
