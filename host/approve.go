package host

import (
	"cmp"
	"strings"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/rule"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// judge answers the requests of a run's agent by the run's rules and its mode.
type judge struct {
	spec *RunSpec
	env  []string // of the host
}

// answer says what the host itself answers to an approval: "approve", "deny" with
// a reason, or "" if people are to answer. Then the reason, if there is one, says
// why the host does not.
func (j judge) answer(asked *engine.Question) (answer, reason string) {
	verdict := j.verdict(asked)
	switch verdict.Effect {
	case rule.Denied:
		return code.InputDeny, "denied by the rule " + verdict.Rule
	case rule.Allowed:
		return code.InputApprove, ""
	case rule.Unclear:
		reason = "the rule " + verdict.Rule + " may forbid it: " + verdict.Reason
	}
	switch j.spec.Approve {
	case ApproveAuto:
		if verdict.Effect == rule.Unclear {
			return "", reason
		}
		return code.InputApprove, ""
	case ApproveAsk:
		return "", reason
	case ApproveRules:
		return code.InputDeny, cmp.Or(reason, "no rule allows it")
	}
	return code.InputDeny, cmp.Or(reason, "nobody is there to approve it")
}

// verdict is what the run's rules say.
func (j judge) verdict(asked *engine.Question) rule.Verdict {
	if len(j.spec.AllowRules)+len(j.spec.DenyRules) == 0 {
		return rule.Verdict{}
	}
	rules, err := rule.New(j.spec.AllowRules, j.spec.DenyRules)
	if err != nil { // a run that an earlier build has started
		return rule.Verdict{Effect: rule.Unclear, Reason: err.Error()}
	}
	home := ""
	for _, name := range []string{"HOME", "USERPROFILE"} {
		home = cmp.Or(home, process.EnvValue(j.env, name))
	}
	q := rule.Request{Tool: asked.Tool, Kind: asked.Kind, Detail: asked.Detail, Paths: asked.Paths, Cwd: j.spec.Cwd, Home: home}
	if q.Kind == pluginapi.ToolShell && !spawn.POSIXShell && !strings.Contains(strings.ToLower(asked.Tool), "bash") {
		q.Kind = pluginapi.ToolCommand
	}
	verdict := rules.Judge(q)
	if asked.Action != asked.Tool && verdict.Effect != rule.Denied {
		// Some agents name what they want beside the tool that wants it. A rule may
		// forbid either.
		q.Tool = asked.Action
		if other := rules.Judge(q); other.Effect == rule.Denied || other.Effect == rule.Unclear {
			return other
		}
	}
	return verdict
}

// checkRules refuses rules that could never be meant.
func checkRules(allow, deny []string) error {
	if _, err := rule.New(allow, deny); err != nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%w", err).WithHint("%s", rule.Hint)
	}
	return nil
}
