package agents

import (
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install/acp"
)

// originJSON says in --json where an agent was added from.
type originJSON struct {
	ID        string `json:"id"`
	Registry  string `json:"registry"`
	Version   string `json:"version"`
	Method    string `json:"method"`
	Package   string `json:"package,omitempty"`
	Archive   string `json:"archive,omitempty"`
	Integrity string `json:"integrity"`
}

func jsonOfOrigin(from acp.Installed) *originJSON {
	return &originJSON{from.ID, from.Registry, from.Version, from.Way.Method, from.Way.Package, from.Way.Archive, from.Integrity}
}

// originOf is where an agent was added from. One of config.toml that has the same name
// comes from there.
func originOf(added []acp.Installed, a host.AgentInfo) (acp.Installed, bool) {
	from, ok := acp.Find(added, a.Description.GetId())
	if !ok || a.Launch != nil && (a.Launch.Adapter != "acp" || a.Launch.Line != "") {
		return acp.Installed{}, false
	}
	return from, true
}

func withOrigin(j agentJSON, added []acp.Installed, a host.AgentInfo) agentJSON {
	if from, ok := originOf(added, a); ok {
		j.Origin = jsonOfOrigin(from)
	}
	return j
}
