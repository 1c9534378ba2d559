//go:build unix

package real

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	wait "github.com/amux-dev/amux/internal/test/agents"
)

// listsModels are the agents whose own command tells their models.
var listsModels = map[string]bool{"omp": true, "openclaw": true, "opencode": true, "opencode-http": true, "pi": true}

// amux agents models lists the model that the agent's settings have, by the name that
// --model takes; and of those that cannot be asked what their adapter knows.
func TestAgentModels(t *testing.T) {
	for _, a := range agents {
		if !selected(a, "models") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, a)
			if can := capabilities(t, a.id)["list_models"]; can != listsModels[a.id] {
				t.Fatalf("declared: %v, tested: %v", can, listsModels[a.id])
			}
			var list []struct{ ID string }
			// It may take the agent's command longer than amux waits on a busy machine.
			wait.Eventually(t, max(time.Minute, a.patience), "the list comes", func() bool {
				out, err := r.amux(t.Context(), "agents", "models", a.id, "--json").Output()
				return err == nil && json.Unmarshal(out, &list) == nil
			})
			if listsModels[a.id] && !slices.ContainsFunc(list, func(m struct{ ID string }) bool { return m.ID == a.model }) {
				t.Errorf("%s is not among %v", a.model, list)
			}
		})
	}
}
