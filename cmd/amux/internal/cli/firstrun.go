package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// started says which program a plugin's plan starts, unless the plugin came with amux.
func startLine(agent host.AgentInfo, program string) string {
	place := ""
	if len(agent.InPlaceOf) > 0 {
		place = ", in the place of " + strings.Join(agent.InPlaceOf, ", ")
	}
	return fmt.Sprintf("agent %s runs %s (plugin %s %s, %s%s)", agent.Description.GetId(), program, agent.Plugin, agent.PluginVersion, agent.Trust, place)
}

// onPlan shows what a plugin that did not come with amux starts. At a terminal it asks
// once for each plugin and signer, or for each build of one that is not signed.
func (s *session) onPlan(agent host.AgentInfo, o *runOptions) func(context.Context, host.Planned) error {
	if agent.Bundled {
		return nil
	}
	return func(ctx context.Context, planned host.Planned) error {
		if !o.quiet {
			s.errf("%s", startLine(agent, planned.Program))
		}
		if o.json || o.input != "" {
			return nil
		}
		return s.letRun(ctx, agent)
	}
}

// letRun asks at a terminal whether a plugin may run that never did here. Who gave it by
// --plugin, or linked it, has said so; without a terminal who installed it has.
func (s *session) letRun(ctx context.Context, agent host.AgentInfo) error {
	if agent.Bundled || agent.Identity == "" || !s.somebody() {
		return nil
	}
	in, err := s.installer("")
	if err != nil {
		return err
	}
	if in.Known(agent.Plugin, agent.Identity) {
		return nil
	}
	answer := make(chan bool, 1)
	go func() { // ends with the answer, or with this process
		answer <- s.confirm(fmt.Sprintf("amux: plugin %s (%s) has not run here before, and does so with your rights; go on?", agent.Plugin, agent.Trust))
	}()
	select {
	case yes := <-answer:
		if !yes {
			return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s was not let run", agent.Plugin).
				WithHint("nothing was started; to look at it: amux plugin info %s", agent.Plugin)
		}
		return in.Remember(agent.Plugin, agent.Identity)
	case <-ctx.Done():
		return ctx.Err()
	}
}
