package real

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// What was changed in an approval is what an agent does that takes it, and nothing else.
func TestEditedApproval(t *testing.T) {
	for _, a := range agents {
		if !capabilities(t, a.id)["edit_approvals"] || !selected(a, "edited approval") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, a)
			asked, edited := r.path("asked"), r.path("edited")
			r.converse("--approve", "ask")
			r.prompt("[fm:" + r.agent.asksAbout + "=" + asked + "]")
			request := r.until("approval_request")
			var fields struct{ Input json.RawMessage }
			if err := json.Unmarshal([]byte(request.Raw), &fields); err != nil {
				t.Fatal(err)
			}
			input := strings.ReplaceAll(string(fields.Input), asked, edited)
			r.send(map[string]any{"type": "approve", "interaction_id": request.InteractionID, "updated_input": json.RawMessage(input)})
			r.until("turn_end")
			r.send(map[string]any{"type": "end"})
			r.wait()
			r.ok(1)
			if _, err := os.Stat(edited); err != nil {
				t.Errorf("the changed tool did not run: %v", err)
			}
			if _, err := os.Stat(asked); err == nil {
				t.Error("what was asked ran, and not what was approved")
			}
		})
	}
}
