package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// welcome is what amux alone prints: which agents can be used here, what is going on, and
// the next commands to type. It starts nothing. It prints the help where the agents cannot
// be listed: amux doctor says why.
func welcome(a *app.App, cmd *cobra.Command) error {
	h, err := a.Opener.ForRuns()
	if err != nil {
		return cmd.Help()
	}
	agents, err := h.Agents(context.Background())
	if err != nil || len(agents) == 0 {
		if alone := a.Process.Whole(); alone != nil {
			return alone
		}
		return cmd.Help()
	}
	var ready, unsigned, missing []string
	demo, first, stranger, way := false, "", "", ""
	for _, agent := range agents {
		switch id := agent.Description.GetId(); {
		case agent.Err != nil || !agent.PlatformOK:
		case agent.Description.GetDemo():
			demo = true
		case agent.Description.GetConfigurable() || agent.Description.GetConfigured():
			// It stands for another one, which somebody has to name.
		case !agent.Installed:
			missing = append(missing, id)
		case !agent.SignedIn:
			unsigned = append(unsigned, titled(agent))
			if stranger == "" {
				stranger, way = id, strings.Join(agent.Description.AuthGuidance, "; ")
			}
		default:
			ready = append(ready, titled(agent))
			if first == "" {
				first = id
			}
		}
	}
	p := a.Print
	p.Outf("amux runs coding agents, each with the same commands.\n\n")
	var rows [][]string
	add := func(what string, names []string) {
		if len(names) > 0 {
			rows = append(rows, []string{what, render.String(strings.Join(names, ", "))})
		}
	}
	add("Ready", ready)
	add("Not signed in", unsigned)
	add("Not installed", missing)
	if runs, err := h.Live(context.Background()); err == nil {
		add("Runs", goingOn(runs))
	}
	p.Page(rows)
	p.Outf("\nNext:\n")
	rows = nil
	next := func(command, what string) { rows = append(rows, []string{"  " + command, render.String(what)}) }
	if first != "" {
		next("amux run "+first+` "why does the build fail?"`, "")
	}
	if demo {
		next(`amux run demo "hello"`, "try it: needs no account and costs nothing")
	}
	switch {
	case first != "":
	case stranger != "":
		next("amux agents auth "+stranger, way)
	case len(missing) > 0:
		next("amux agents install "+suggested(missing), "")
	}
	next("amux agents list", "agents, and what they still need")
	next("amux doctor", "check the installation")
	next("amux --help", "all commands")
	p.Page(rows)
	return nil
}

// titled is an agent with the version of its CLI, where that is known.
func titled(a host.AgentInfo) string {
	return strings.TrimSpace(a.Description.GetId() + " " + a.Version)
}

// suggested is the agent to install first: the one that most people have an account for.
func suggested(missing []string) string {
	for _, id := range missing {
		if id == "claude" {
			return id
		}
	}
	return missing[0]
}

// goingOn counts the live runs, and those of them that wait for a person.
func goingOn(runs []host.RunInfo) []string {
	live, waiting := 0, 0
	for _, run := range runs {
		if app.HasEnded(run) {
			continue
		}
		live++
		if strings.HasPrefix(run.State, "waiting") {
			waiting++
		}
	}
	switch {
	case live == 0:
		return nil
	case waiting == 0:
		return []string{render.Plural(live, "run") + " (amux ps)"}
	}
	return []string{render.Plural(live, "run") + " (amux ps)", render.Plural(waiting, "question") + " for you"}
}
