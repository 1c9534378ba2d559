package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// startLine names the program that a plugin's plan starts.
func startLine(agent host.AgentInfo, program string) string {
	place := ""
	if len(agent.InPlaceOf) > 0 {
		place = ", in the place of " + strings.Join(agent.InPlaceOf, ", ")
	}
	return fmt.Sprintf("agent %s runs %s (plugin %s %s, %s%s)", agent.Description.GetId(), program, agent.Plugin, agent.PluginVersion, agent.Trust, place)
}

// onPlan shows what a plugin that did not come with amux starts. At a terminal it asks
// once for each plugin and signer, or for each build of an unsigned plugin. It is nil
// for a bundled plugin.
func (r *request) onPlan() func(context.Context, host.Planned) error {
	if r.agent.Bundled {
		return nil
	}
	return func(ctx context.Context, planned host.Planned) error {
		if !r.Quiet {
			r.Print.Notef("%s", startLine(r.agent, planned.Program))
		}
		if r.JSON || r.Input != "" {
			return nil
		}
		return r.confirmPlugin(ctx)
	}
}

// confirmPlugin asks at a terminal whether a plugin may run that never ran here. To give
// it with --plugin, or to link it, is a yes; without a terminal its installation is.
func (r *request) confirmPlugin(ctx context.Context) error {
	agent := r.agent
	if agent.Bundled || agent.Identity == "" || !r.Process.Attended() {
		return nil
	}
	in, err := r.Plugins.Installer("")
	if err != nil {
		return err
	}
	if in.Known(agent.Plugin, agent.Identity) {
		return nil
	}
	answer := make(chan bool, 1)
	go func() { // ends with the answer, or with this process
		answer <- r.Confirm(fmt.Sprintf("amux: plugin %s (%s) has never run here, and it has all your rights; run it?", agent.Plugin, agent.Trust))
	}()
	select {
	case yes := <-answer:
		if !yes {
			return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s was refused", agent.Plugin).
				WithHint("nothing was started; see: amux plugin info %s", agent.Plugin)
		}
		return in.Remember(agent.Plugin, agent.Identity)
	case <-ctx.Done():
		return ctx.Err()
	}
}
