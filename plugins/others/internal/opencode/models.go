package opencode

import (
	"context"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// Models asks the CLI for models.
type Models struct{}

// ListModels asks the CLI for the models of the providers that it has, a line each.
func (Models) ListModels(_ context.Context, q *pluginapi.ModelsQuery) ([]*pluginapi.Model, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "opencode", "models")
	if err != nil {
		return nil, err
	}
	var models []*pluginapi.Model
	for line := range strings.Lines(string(text)) {
		if id := strings.TrimSpace(line); strings.Contains(id, "/") && !strings.ContainsAny(id, " \t") {
			models = append(models, &pluginapi.Model{Id: id})
		}
	}
	return models, nil
}
