package doctor

import (
	"fmt"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// recentRuns is how many of an agent's last runs show whether its output still has the
// format that its adapter expects.
const recentRuns = 20

// checkFormats finds agents that lately printed lines which their adapter does not
// know: usually the CLI is a new version.
func checkFormats(runs []host.RunInfo, agents []host.AgentInfo) []finding {
	type drift struct {
		runs, of, lines int
		last            string
	}
	seen := map[string]*drift{}
	var order []string
	for _, run := range runs { // newest first
		d := seen[run.Agent]
		if d == nil {
			d = &drift{}
			seen[run.Agent] = d
			order = append(order, run.Agent)
		}
		if run.End == nil || d.of == recentRuns {
			continue
		}
		d.of++
		if n := run.End.UnknownLines; n > 0 {
			d.runs++
			d.lines += n
			if d.last == "" {
				d.last = run.ID
			}
		}
	}
	var findings []finding
	for _, agent := range order {
		d := seen[agent]
		if d.lines == 0 {
			continue
		}
		message := fmt.Sprintf("%d unknown lines in %d of its last %d runs", d.lines, d.runs, d.of)
		for _, a := range agents {
			tested := a.Description.GetVersions().GetTested()
			if a.Description.GetId() == agent && a.Version != "" && tested != "" && a.Version != tested {
				message += fmt.Sprintf("; its version is %s, its adapter was tested with %s", a.Version, tested)
			}
		}
		findings = append(findings, finding{Check: "format of " + agent, Status: "note", Message: message,
			Fix: "amux logs " + render.ShortID(d.last) + " --json shows them as log; a newer plugin may know them"})
	}
	return findings
}

// checkAgent reports what an agent still needs. That is never a failure of amux.
func checkAgent(a host.AgentInfo) finding {
	f := finding{Check: "agent " + a.Description.GetId(), Status: "ok"}
	switch {
	case !a.PlatformOK:
		f.Status, f.Message = "note", "no build for this platform"
	case !a.Installed:
		f.Status, f.Message = "note", "not installed"
		for _, i := range a.Description.Installs {
			if text := render.InstallCommand(i); text != "" {
				f.Fix = text
				break
			}
		}
	case !a.SignedIn:
		f.Status, f.Message = "note", "installed, "+render.SignedIn(a)
		if word := render.SignedIn(a); word == "no" {
			f.Message = "installed, not signed in"
		}
		f.Fix = strings.Join(a.Description.AuthGuidance, "; ")
	default:
		f.Message = "installed"
		if a.Version != "" {
			f.Message += " " + a.Version
		}
		if len(a.Auth) > 0 {
			f.Message += ", signed in"
		}
	}
	return f
}
