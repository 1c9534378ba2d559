package host

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// judge says what the host itself answers to an approval: "approve", "deny" with
// a reason, or "" if people are to answer.
func judge(spec *RunSpec, i *interaction) (answer, reason string) {
	if rule := firstMatch(spec.DenyRules, i); rule != "" {
		return "deny", "denied by the rule " + rule
	}
	if firstMatch(spec.AllowRules, i) != "" {
		return "approve", ""
	}
	switch spec.Approve {
	case ApproveAuto:
		return "approve", ""
	case ApproveAsk:
		return "", ""
	case ApproveRules:
		return "deny", "no rule allows it"
	}
	return "deny", "nobody is there to approve it"
}

func firstMatch(rules []string, i *interaction) string {
	for _, rule := range rules {
		if matchRule(rule, i.tool, i.detail) {
			return rule
		}
	}
	return ""
}

// matchRule reports whether a rule of the form Tool or Tool(pattern) fits. Both
// parts may use *; the pattern is held against the whole detail of the request,
// which is the command of a shell and the path of a file.
func matchRule(rule, tool, detail string) bool {
	name, pattern, has := strings.Cut(rule, "(")
	if !glob(name, tool) {
		return false
	}
	return !has || glob(strings.TrimSuffix(pattern, ")"), detail)
}

// glob matches * with anything, slashes included.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// checkRule refuses a rule that could never be meant.
func checkRule(rule string) error {
	name, pattern, has := strings.Cut(rule, "(")
	if name == "" || has && !strings.HasSuffix(pattern, ")") || strings.ContainsAny(name, " \t)") {
		return pluginapi.Errorf(pluginapi.CodeValidation, "rule %q is not of the form Tool or Tool(pattern)", rule).
			WithHint("for example: Bash(git *), Edit, mcp__*")
	}
	return nil
}
