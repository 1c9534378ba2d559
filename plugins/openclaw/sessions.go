package main

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListSessions asks the CLI: its sessions are in a database whose form changes. It
// does not tell in which folder they were, so that all of them are of every folder.
func (adapter) ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	results := q.GetExecResults()
	if len(results) == 0 {
		return &sdk.ExecNeeded{Argv: []string{"openclaw", "sessions", "list", "--all-agents", "--limit", "all", "--json"}}
	}
	if code := results[0].GetExitCode(); code != 0 {
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "openclaw sessions list failed with code %d", code)
	}
	var list struct {
		Sessions []struct {
			Key, SessionID, Model, ModelProvider, AgentID string
			UpdatedAt, SessionStartedAt                   int64
		}
	}
	if err := json.Unmarshal(results[0].GetStdout(), &list); err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "what openclaw sessions list prints is not understood: %v", err)
	}
	sent := uint32(0)
	for _, s := range list.Sessions {
		model := s.Model
		if s.ModelProvider != "" {
			model = s.ModelProvider + "/" + model
		}
		if !yield(&pluginapi.SessionSummary{
			Id: s.SessionID, Title: s.Key, Model: model,
			CreatedUnixMs: s.SessionStartedAt, UpdatedUnixMs: s.UpdatedAt,
		}) {
			return nil
		}
		if sent++; q.GetLimit() > 0 && sent >= q.GetLimit() {
			return nil
		}
	}
	return ctx.Err()
}
