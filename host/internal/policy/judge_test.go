package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/pluginapi"
)

// What the host answers by itself, for each mode: what a deny rule may mean is for
// people, whatever the mode.
func TestJudge(t *testing.T) {
	const named, unnamed, forbidden, unclear = "go test ./...", "ls", "env curl x", "x=curl; $x evil"
	for _, test := range []struct {
		mode    string
		command string
		want    string
	}{
		{Ask, named, "approve"}, {Ask, unnamed, ""}, {Ask, forbidden, "deny"}, {Ask, unclear, ""},
		{Auto, named, "approve"}, {Auto, unnamed, "approve"}, {Auto, forbidden, "deny"}, {Auto, unclear, ""},
		{"deny", named, "approve"}, {"deny", unnamed, "deny"}, {"deny", forbidden, "deny"}, {"deny", unclear, "deny"},
		{Rules, named, "approve"}, {Rules, unnamed, "deny"}, {Rules, forbidden, "deny"}, {Rules, unclear, "deny"},
	} {
		for _, kind := range []string{"", pluginapi.ToolShell} {
			for _, tool := range []string{"Bash", ""} {
				j := Judge{test.mode, []string{"Bash(go test *)"}, []string{"Bash(curl *)"}, "/work", []string{"HOME=/home/user"}, false}
				event, err := json.Marshal(pluginapi.ApprovalRequest{InteractionID: "1", Action: "bash", ToolName: tool, Detail: test.command, ToolKind: kind})
				if err != nil {
					t.Fatal(err)
				}
				var questions engine.Questions
				questions.Learn("approval_request", event)
				if got, reason := j.Answer(questions.Open()[0], engine.Standing{}); got != test.want {
					t.Errorf("%s, tool %q of kind %q: %s is answered with %q (%s)", test.mode, tool, kind, test.command, got, reason)
				} else if test.command == unclear && !strings.Contains(reason, "Bash(curl *)") {
					t.Errorf("%s: the reason %q does not name the rule", test.mode, reason)
				}
			}
		}
	}
}

// Rules that an earlier build took and this one does not must not approve.
func TestJudgeByOldRules(t *testing.T) {
	j := Judge{Mode: Auto, Deny: []string{"Bash(curl * | sh)"}}
	if answer, _ := j.Answer(&engine.Question{Tool: "Bash", Kind: pluginapi.ToolShell, Detail: "ls"}, engine.Standing{}); answer != "" {
		t.Errorf("answered with %q", answer)
	}
}
