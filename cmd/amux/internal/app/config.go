package app

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// MaxConfigFile bounds a file of settings that a flag names.
const MaxConfigFile = 4 << 20

// Config is the configuration folder and the settings in it.
type Config struct {
	process *Process
	flags   *Flags
	print   *Printer
	project *Project

	Profile  string // that a flag names
	read     bool
	settings settings.Settings
	err      error
}

// Dir is the flag, the variable, or ~/.agent-mux.
func (c *Config) Dir() (string, error) {
	for _, dir := range []string{c.flags.ConfigDir, c.process.Getenv("AGENT_MUX_CONFIG_DIR")} {
		if dir != "" {
			return c.process.Abs(dir), nil
		}
	}
	if c.process.Home == "" {
		return "", pluginapi.Errorf(pluginapi.CodeConfig, "no home directory to keep settings and runs in").
			WithHint("name a folder with --config-dir or AGENT_MUX_CONFIG_DIR")
	}
	return filepath.Join(c.process.Home, ".agent-mux"), nil
}

// SafeDir is Dir; an error if another user owns that folder or may write to it.
func (c *Config) SafeDir() (string, error) {
	dir, err := c.Dir()
	if err != nil {
		return "", err
	}
	return dir, safeFolder("configuration folder", dir, "choose another one with --config-dir or AGENT_MUX_CONFIG_DIR")
}

// safeFolder refuses a folder that others own or may write to.
func safeFolder(what, dir, way string) error {
	err := foreign.CheckFolder(dir)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		if fix := foreign.Fix(err); fix != "" {
			way = fix + "; or " + way
		}
		return pluginapi.Errorf(pluginapi.CodeConfig, "the %s %s is not used: %w", what, dir, e.Err).WithHint("%s", way)
	}
	return err
}

// Settings are the user's and those of the project here. They are read once.
func (c *Config) Settings() (settings.Settings, error) {
	if !c.read {
		c.read = true
		dir, err := c.SafeDir()
		if err == nil {
			c.project.WarnIgnored(dir)
			c.settings, err = settings.LoadProfile(dir, c.project.Dir(dir), c.ProfileName())
		}
		c.err = err
	}
	return c.settings, c.err
}

// ProfileName is the profile that the flag or the variable names; "" if neither does.
func (c *Config) ProfileName() string {
	if c.Profile != "" {
		return c.Profile
	}
	return c.process.Getenv("AMUX_PROFILE")
}

// User are the settings of the user alone, wherever the command line is given.
func (c *Config) User() (settings.Settings, error) {
	dir, err := c.SafeDir()
	if err != nil {
		return settings.Settings{}, err
	}
	return settings.Load(dir, "")
}

// Cautious are the settings where the user's cannot be read: every check is on.
var Cautious = settings.Settings{AlwaysVerify: true}

// Known are the user's settings as far as they can be read, for commands about runs
// that exist: an invalid config.toml is only a warning there.
func (c *Config) Known() (settings.Settings, error) {
	if _, err := c.SafeDir(); err != nil {
		return settings.Settings{}, err
	}
	set, err := c.User()
	if err != nil {
		c.print.Warnf("config.toml is not used: %v", err)
		return Cautious, nil
	}
	return set, nil
}

// Overrides are the plugins that [dev_overrides] of settings and --plugin put in the
// place of installed ones.
func (c *Config) Overrides(set settings.Settings) (map[string]string, error) {
	dir, err := c.Dir()
	if err != nil {
		return nil, err
	}
	overrides := map[string]string{}
	for name, path := range set.DevOverrides {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		overrides[name] = path
	}
	for _, flag := range c.flags.Plugins {
		name, path, ok := strings.Cut(flag, "=")
		if !ok || name == "" || path == "" {
			return nil, Usagef("invalid --plugin %q: expected NAME=PATH", flag).WithHint("for example: --plugin acme=./bin/amux-plugin-acme")
		}
		overrides[name] = c.process.Abs(path)
	}
	return overrides, nil
}
