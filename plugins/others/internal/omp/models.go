package omp

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListModels asks the CLI for the models of the providers that you have a key for.
func (Adapter) ListModels(_ context.Context, q *pluginapi.ModelsQuery) ([]*pluginapi.Model, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "omp", "models", "--json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Models []struct{ Selector, Name string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "what omp models prints is not understood: %w", err)
	}
	var models []*pluginapi.Model
	for _, m := range list.Models {
		models = append(models, &pluginapi.Model{Id: m.Selector, DisplayName: m.Name})
	}
	return models, nil
}
