package pi

import (
	"context"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// ListModels asks the CLI for the models of the providers that you have a key for, which
// it prints for people: a heading, and a line for each that begins with its provider and
// its name.
func (Adapter) ListModels(_ context.Context, q *pluginapi.ModelsQuery) ([]*pluginapi.Model, error) {
	text, err := sdk.OutputOf(q.GetExecResults(), "pi", "--list-models")
	if err != nil {
		return nil, err
	}
	var models []*pluginapi.Model
	table := false
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Fields(line); {
		case len(fields) < 2:
		case fields[0] == "provider" && fields[1] == "model":
			table = true
		case table:
			models = append(models, &pluginapi.Model{Id: fields[0] + "/" + fields[1]})
		}
	}
	return models, nil
}
