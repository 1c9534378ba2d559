package host

import (
	"context"

	"github.com/amux-dev/amux/host/journal"
)

// Planned is what a plugin's plan is about to start.
type Planned struct {
	Agent         string
	Plugin        string
	PluginVersion string
	Trust         string // "bundled", "signed by …"
	Program       string // absolute
	Args          []string
	Cwd           string
}

// planned tells RunSpec.OnPlan.
func (l *launch) planned(ctx context.Context, record journal.Plan) error {
	if l.spec.OnPlan == nil {
		return nil
	}
	return l.spec.OnPlan(ctx, Planned{
		Agent: l.spec.Agent, Plugin: l.plugin.Plugin.Name, PluginVersion: l.plugin.Plugin.Version, Trust: l.plugin.Plugin.Trust,
		Program: record.Program, Args: record.Args, Cwd: record.Cwd,
	})
}
