package main

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListModels asks the CLI for the models that it is set up for.
func (adapter) ListModels(_ context.Context, q *pluginapi.ModelsQuery) ([]*pluginapi.Model, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "openclaw", "models", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Models []struct{ Key, Name string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what openclaw models list prints is not understood: %w", err)
	}
	var models []*pluginapi.Model
	for _, m := range list.Models {
		models = append(models, &pluginapi.Model{Id: m.Key, DisplayName: m.Name})
	}
	return models, nil
}
