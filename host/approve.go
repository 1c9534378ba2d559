package host

import (
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/host/rule"
	"github.com/amux-dev/amux/pluginapi"
)

// judge says what the host itself answers to an approval: "approve", "deny" with
// a reason, or "" if people are to answer. Then the reason, if there is one, says
// why the host does not.
func (r *Run) judge(i *interaction) (answer, reason string) {
	verdict := r.verdict(i)
	switch verdict.Effect {
	case rule.Denied:
		return "deny", "denied by the rule " + verdict.Rule
	case rule.Allowed:
		return "approve", ""
	case rule.Unclear:
		reason = "the rule " + verdict.Rule + " may forbid it: " + verdict.Reason
	}
	switch r.spec.Approve {
	case ApproveAuto:
		if verdict.Effect == rule.Unclear {
			return "", reason
		}
		return "approve", ""
	case ApproveAsk:
		return "", reason
	case ApproveRules:
		return "deny", or(reason, "no rule allows it")
	}
	return "deny", or(reason, "nobody is there to approve it")
}

// verdict is what the run's rules say.
func (r *Run) verdict(i *interaction) rule.Verdict {
	if len(r.spec.AllowRules)+len(r.spec.DenyRules) == 0 {
		return rule.Verdict{}
	}
	rules, err := rule.New(r.spec.AllowRules, r.spec.DenyRules)
	if err != nil { // a run that an earlier build has started
		return rule.Verdict{Effect: rule.Unclear, Reason: err.Error()}
	}
	home := ""
	for _, name := range []string{"HOME", "USERPROFILE"} {
		home = or(home, envValue(r.h.opts.Env, name))
	}
	q := rule.Request{Tool: i.tool, Kind: i.kind, Detail: i.detail, Paths: i.paths, Cwd: r.spec.Cwd, Home: home}
	if q.Kind == pluginapi.ToolShell && !posixShell && !strings.Contains(strings.ToLower(i.tool), "bash") {
		q.Kind = pluginapi.ToolCommand
	}
	verdict := rules.Judge(q)
	if i.action != i.tool && verdict.Effect != rule.Denied {
		// Some agents name what they want beside the tool that wants it. A rule may
		// forbid either.
		q.Tool = i.action
		if other := rules.Judge(q); other.Effect == rule.Denied || other.Effect == rule.Unclear {
			return other
		}
	}
	return verdict
}

// guessKind is for adapters that do not say what kind of tool asks.
func guessKind(tool, detail string, input json.RawMessage) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // no object has no fields
	for _, name := range []string{"command", "cmd", "script"} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil && text == detail {
			return pluginapi.ToolShell
		}
		return pluginapi.ToolCommand
	}
	switch strings.ToLower(tool) {
	case "bash", "sh", "zsh", "shell":
		return pluginapi.ToolShell
	case "powershell", "pwsh", "cmd", "exec", "execute", "terminal", "command", "run_command", "run_shell_command", "exec_command", "run_terminal_cmd":
		return pluginapi.ToolCommand
	}
	return ""
}

// checkRules refuses rules that could never be meant.
func checkRules(allow, deny []string) error {
	if _, err := rule.New(allow, deny); err != nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%w", err).WithHint("%s", rule.Hint)
	}
	return nil
}
