package host

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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
				r := &Run{h: &Host{opts: Options{Env: []string{"HOME=/home/user"}}}, spec: RunSpec{
					Approve: test.mode, AllowRules: []string{"Bash(go test *)"}, DenyRules: []string{"Bash(curl *)"}, Cwd: "/work",
				}}
				f := ledger{}
				event, err := json.Marshal(pluginapi.ApprovalRequest{InteractionID: "1", Action: "bash", ToolName: tool, Detail: test.command, ToolKind: kind})
				if err != nil {
					t.Fatal(err)
				}
				f.learn("approval_request", event, time.Now())
				if got, reason := r.judge(f.pending["1"]); got != test.want {
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
	r := &Run{h: &Host{}, spec: RunSpec{Approve: ApproveAuto, DenyRules: []string{"Bash(curl * | sh)"}}}
	if answer, _ := r.judge(&interaction{tool: "Bash", kind: pluginapi.ToolShell, detail: "ls"}); answer != "" {
		t.Errorf("answered with %q", answer)
	}
}

func TestGuessKind(t *testing.T) {
	for _, test := range []struct{ tool, detail, input, want string }{
		{"Bash", "ls", "", pluginapi.ToolShell},
		{"run", "ls", `{"command":"ls"}`, pluginapi.ToolShell},
		{"run", "list the files", `{"command":"ls"}`, pluginapi.ToolCommand},
		{"run", "ls", `{"command":["bash","-lc","ls"]}`, pluginapi.ToolCommand},
		{"execute", "ls", "", pluginapi.ToolCommand},
		{"PowerShell", "ls", "", pluginapi.ToolCommand},
		{"Write", "x", `{"path":"x"}`, ""},
	} {
		if got := guessKind(test.tool, test.detail, json.RawMessage(test.input)); got != test.want {
			t.Errorf("%v: %q", test, got)
		}
	}
}
