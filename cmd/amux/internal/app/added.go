package app

import (
	"path/filepath"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install/acp"
)

// AddedDir is where the agents of ACP registries are installed.
func (c *Config) AddedDir() (string, error) {
	dir, err := c.Dir()
	return filepath.Join(dir, "agents"), err
}

// Added are the agents that were added from an ACP registry.
func (c *Config) Added() ([]acp.Installed, error) {
	dir, err := c.AddedDir()
	if err != nil {
		return nil, err
	}
	return acp.Read(dir)
}

// Launches are the commands of the user's own agents by name: those of config.toml, which
// come first, and those that were added from an ACP registry. With an error the former
// are returned all the same.
func (c *Config) Launches(set settings.Settings) (map[string]host.Launch, error) {
	launches := map[string]host.Launch{}
	for name, a := range set.Agents {
		launches[name] = host.Launch{Adapter: a.Adapter, Line: a.Line, Argv: a.Argv}
	}
	added, err := c.Added()
	if err != nil {
		return launches, err
	}
	dir, err := c.AddedDir()
	for _, a := range added {
		if _, own := launches[a.Name]; !own {
			launches[a.Name] = host.Launch{Adapter: "acp", Argv: a.Argv(dir), Env: a.Way.Env}
		}
	}
	return launches, err
}
