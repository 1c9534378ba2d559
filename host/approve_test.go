package host

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
		mode    ApproveMode
		command string
		want    string
	}{
		{ApproveAsk, named, "approve"}, {ApproveAsk, unnamed, ""}, {ApproveAsk, forbidden, "deny"}, {ApproveAsk, unclear, ""},
		{ApproveAuto, named, "approve"}, {ApproveAuto, unnamed, "approve"}, {ApproveAuto, forbidden, "deny"}, {ApproveAuto, unclear, ""},
		{ApproveDeny, named, "approve"}, {ApproveDeny, unnamed, "deny"}, {ApproveDeny, forbidden, "deny"}, {ApproveDeny, unclear, "deny"},
		{ApproveRules, named, "approve"}, {ApproveRules, unnamed, "deny"}, {ApproveRules, forbidden, "deny"}, {ApproveRules, unclear, "deny"},
	} {
		for _, kind := range []string{"", pluginapi.ToolShell} {
			for _, tool := range []string{"Bash", ""} {
				j := judge{&RunSpec{
					Permissions: Permissions{Approve: test.mode, AllowRules: []string{"Bash(go test *)"}, DenyRules: []string{"Bash(curl *)"}}, Workspace: Workspace{Cwd: "/work"},
				}, []string{"HOME=/home/user"}}
				event, err := json.Marshal(pluginapi.ApprovalRequest{InteractionID: "1", Action: "bash", ToolName: tool, Detail: test.command, ToolKind: kind})
				if err != nil {
					t.Fatal(err)
				}
				var questions engine.Questions
				questions.Learn("approval_request", event)
				if got, reason := j.answer(questions.Open()[0]); got != test.want {
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
	j := judge{spec: &RunSpec{Permissions: Permissions{Approve: ApproveAuto, DenyRules: []string{"Bash(curl * | sh)"}}}}
	if answer, _ := j.answer(&engine.Question{Tool: "Bash", Kind: pluginapi.ToolShell, Detail: "ls"}); answer != "" {
		t.Errorf("answered with %q", answer)
	}
}
