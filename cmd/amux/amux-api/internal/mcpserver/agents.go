package mcpserver

import "context"

type agentsIn struct{}

type agentOut struct {
	Agent     string `json:"agent" jsonschema:"for run_start"`
	Installed bool   `json:"installed"`
	SignedIn  bool   `json:"signed_in"`
	Version   string `json:"version,omitempty"`
	Problem   string `json:"problem,omitempty" jsonschema:"why it cannot be used"`
}

type agentsOut struct {
	Agents []agentOut `json:"agents"`
}

func (s *server) agents(ctx context.Context, _ func(float64, string), _ agentsIn) (agentsOut, error) {
	all, err := s.host.Agents(ctx)
	out := agentsOut{Agents: []agentOut{}}
	for _, a := range all {
		row := agentOut{Installed: a.Installed, SignedIn: a.SignedIn, Version: a.Version}
		if a.Description != nil {
			row.Agent = a.Description.Id
		}
		if a.Err != nil {
			row.Problem = problemOf(a.Err).Message
		}
		out.Agents = append(out.Agents, row)
	}
	return out, err
}
