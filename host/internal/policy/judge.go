// Package policy decides for a run what nobody is asked about: requests that its rules or
// its mode settle, and how often and when a failed agent is started again.
package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/rule"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// The modes of a run: who answers where no rule does.
const (
	Ask   = "ask"   // people
	Auto  = "auto"  // the host, which grants it
	Rules = "rules" // the host, which denies it, as in any other mode
)

// Judge answers the requests of a run's agent by the run's rules and its mode.
type Judge struct {
	Mode        string
	Allow, Deny []string // rules
	Cwd         string   // of the agent
	Env         []string // of the host
	Elsewhere   bool     // Cwd and paths are of another machine
}

// Answer says what the host itself answers to an approval: "approve", "deny" with
// a reason, or "" if people are to answer. Then the reason, if there is one, says
// why the host does not. decided is what people have decided during the run.
func (j Judge) Answer(asked *engine.Question, decided engine.Standing) (answer, reason string) {
	verdict := j.verdict(asked, decided.Allow)
	switch verdict.Effect {
	case rule.Denied:
		return code.InputDeny, "denied by the rule " + verdict.Rule
	case rule.Allowed:
		return code.InputApprove, ""
	case rule.Unclear:
		reason = "the rule " + verdict.Rule + " may forbid it: " + verdict.Reason
	}
	switch cmp.Or(decided.Mode, j.Mode) {
	case Auto:
		if verdict.Effect == rule.Unclear {
			return "", reason
		}
		return code.InputApprove, ""
	case Ask:
		return "", reason
	case Rules:
		return code.InputDeny, cmp.Or(reason, "no rule allows it")
	}
	return code.InputDeny, cmp.Or(reason, "nobody is there to approve it")
}

// Suggest returns allow rules for a request and others of its kind; nil if none would
// make the host approve it.
func (j Judge) Suggest(asked *engine.Question) []string {
	rules := rule.Suggest(j.request(asked))
	if answer, _ := j.Answer(asked, engine.Standing{Allow: rules}); rules == nil || answer != code.InputApprove {
		return nil
	}
	return rules
}

// Near returns the allow rules that are about the tool of a request which they do not
// allow.
func (j Judge) Near(asked *engine.Question, allowed []string) []string {
	rules, err := rule.New(slices.Concat(j.Allow, allowed), nil)
	if err != nil {
		return nil
	}
	return rules.Naming(j.request(asked))
}

// verdict is what the run's rules say.
func (j Judge) verdict(asked *engine.Question, allowed []string) rule.Verdict {
	if len(j.Allow)+len(j.Deny)+len(allowed) == 0 {
		return rule.Verdict{}
	}
	rules, err := rule.New(slices.Concat(j.Allow, allowed), j.Deny)
	if err != nil { // a run that an earlier build has started
		return rule.Verdict{Effect: rule.Unclear, Reason: err.Error()}
	}
	q := j.request(asked)
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

// request is a question as rules see it.
func (j Judge) request(asked *engine.Question) rule.Request {
	home := ""
	for _, name := range []string{"HOME", "USERPROFILE"} {
		home = cmp.Or(home, process.EnvValue(j.Env, name))
	}
	q := rule.Request{Tool: asked.Tool, Kind: asked.Kind, Detail: asked.Detail, Paths: asked.Paths, Cwd: j.Cwd, Home: home, Elsewhere: j.Elsewhere}
	if q.Kind == pluginapi.ToolShell && !spawn.POSIXShell && !strings.Contains(strings.ToLower(asked.Tool), "bash") {
		q.Kind = pluginapi.ToolCommand
	}
	return q
}

// CheckRules refuses rules that could never be meant.
func CheckRules(allow, deny []string) error {
	if _, err := rule.New(allow, deny); err != nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%w", err).WithHint("%s", rule.Hint)
	}
	return nil
}
