package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// The kinds of requests.
const (
	KindShell   = pluginapi.ToolShell
	KindCommand = pluginapi.ToolCommand
	KindFile    = pluginapi.ToolFile
	KindFetch   = pluginapi.ToolFetch
)

// Request is what an agent asks for.
type Request struct {
	Tool   string
	Kind   string // empty: any other
	Detail string
	Paths  []string
	Cwd    string // where relative paths begin
	Home   string // what ~ stands for; may be empty
	// Elsewhere says that the paths are of another machine: no link is followed.
	Elsewhere bool
}

// Effect is what the rules say.
type Effect int

// The effects.
const (
	// Open: no rule says anything.
	Open Effect = iota
	// Unclear: a deny rule may mean the request, which cannot be told. Only a person
	// may approve it.
	Unclear
	// Allowed by a rule.
	Allowed
	// Denied by a rule.
	Denied
)

// Verdict is what the rules say about a request, and why.
type Verdict struct {
	Effect Effect
	Rule   string // that decided; empty if Open
	Reason string // of Unclear: what cannot be told
}

// Set is the rules of a run.
type Set struct{ allow, deny []*rule }

// rule is one of them: a tool, or a tool and a pattern.
type rule struct {
	text    string
	tool    string
	has     bool // a pattern
	pattern string
	words   []word // the pattern as one of a command; nil if it cannot be one
}

// New reads the rules. An error names the first that is malformed.
func New(allow, deny []string) (*Set, error) {
	s := &Set{}
	for _, text := range allow {
		r, err := parse(text)
		if err != nil {
			return nil, err
		}
		s.allow = append(s.allow, r)
	}
	for _, text := range deny {
		r, err := parse(text)
		if err != nil {
			return nil, err
		}
		s.deny = append(s.deny, r)
	}
	return s, nil
}

// Hint is the way out for a malformed rule.
const Hint = "for example: 'Bash(git status *)', Edit, 'mcp__github__*'; a shell rule names one command, see docs/approvals.md"

func parse(text string) (*rule, error) {
	tool, pattern, has := strings.Cut(text, "(")
	if tool == "" || has && !strings.HasSuffix(pattern, ")") || strings.ContainsFunc(tool, func(r rune) bool { return r == ')' || r <= ' ' || r == 0x7f }) {
		return nil, fmt.Errorf("rule %q is not of the form Tool or Tool(pattern)", text)
	}
	r := &rule{text: text, tool: tool, has: has, pattern: strings.TrimSpace(strings.TrimSuffix(pattern, ")"))}
	if has && r.pattern == "" {
		return nil, fmt.Errorf("rule %q has an empty pattern", text)
	}
	if r.pattern == "*" {
		r.has, r.pattern = false, ""
	}
	if r.words = patternWords(r.pattern); r.has && r.words == nil && anyShell(tool) {
		return nil, fmt.Errorf("rule %q: the pattern is not one plain command", text)
	}
	return r, nil
}

// anyShell reports whether a rule's tool stands for every shell, whatever the agent
// calls it.
func anyShell(tool string) bool {
	return strings.EqualFold(tool, "Bash") || strings.EqualFold(tool, "Shell")
}

// names reports whether the rule is about the tool of a request.
func (r *rule) names(q *Request) bool {
	return Glob(r.tool, q.Tool) || q.Kind == KindShell && anyShell(r.tool)
}

// mayName is names for a deny rule: letter case is no way around it.
func (r *rule) mayName(q *Request) bool {
	return Glob(fold(r.tool), fold(q.Tool)) || (q.Kind == KindShell || q.Kind == KindCommand) && anyShell(r.tool)
}

func fold(text string) string { return strings.ToLower(text) }

// Judge says what the rules say about a request. Denied wins over Unclear, which
// wins over Allowed.
func (s *Set) Judge(q Request) Verdict {
	var verdict Verdict
	var script *script
	for _, r := range s.deny {
		if !r.mayName(&q) {
			continue
		}
		effect, reason := Denied, ""
		if r.has {
			if isCommand(&q) && script == nil {
				script = analyse(q.Detail)
			}
			effect, reason = r.denies(&q, script)
		}
		switch {
		case effect == Denied:
			return Verdict{Effect: Denied, Rule: r.text}
		case effect == Unclear && verdict.Effect == Open:
			verdict = Verdict{Effect: Unclear, Rule: r.text, Reason: reason}
		}
	}
	if verdict.Effect != Open {
		return verdict
	}
	var patterns []*rule
	for _, r := range s.allow {
		if !r.names(&q) {
			continue
		}
		if !r.has {
			return Verdict{Effect: Allowed, Rule: r.text}
		}
		patterns = append(patterns, r)
	}
	if len(patterns) == 0 {
		return verdict
	}
	if text := allows(patterns, &q); text != "" {
		return Verdict{Effect: Allowed, Rule: text}
	}
	return verdict
}

func isCommand(q *Request) bool { return q.Kind == KindShell || q.Kind == KindCommand }

// allows returns the rule, or one of the rules, that allow a request; empty if they
// do not.
func allows(rules []*rule, q *Request) string {
	switch q.Kind {
	case KindShell:
		return allowsScript(rules, q.Detail)
	case KindFile:
		return allowsFiles(rules, q)
	}
	for _, r := range rules {
		switch {
		case q.Kind == KindCommand:
			if r.pattern == q.Detail && !strings.Contains(r.pattern, "*") {
				return r.text
			}
		case q.Kind == KindFetch || isURL(r.pattern):
			if matchURL(r.pattern, q.Detail, true) {
				return r.text
			}
		case Glob(r.pattern, q.Detail):
			return r.text
		}
	}
	return ""
}

// denies says whether a deny rule with a pattern means the request.
func (r *rule) denies(q *Request, script *script) (Effect, string) {
	if Glob(fold(r.pattern), fold(q.Detail)) {
		return Denied, ""
	}
	switch q.Kind {
	case KindShell:
		return r.deniesScript(script)
	case KindCommand:
		if effect, reason := r.deniesScript(script); effect == Denied {
			return effect, reason
		}
		return Unclear, "the command is not for a POSIX shell, so it cannot be checked"
	case KindFile:
		return r.deniesFiles(q)
	case KindFetch:
		return r.deniesURL(q.Detail)
	}
	if isURL(r.pattern) {
		return r.deniesURL(q.Detail)
	}
	return Open, ""
}

// Glob matches * with any text.
func Glob(pattern, text string) bool {
	if strings.IndexByte(pattern, '*') < 0 {
		return pattern == text
	}
	return inOrder(strings.Split(pattern, "*"), text)
}

// inOrder reports whether text begins with the first of two or more parts, ends with
// the last and has the others between, in order and apart.
func inOrder(parts []string, text string) bool {
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

// contains reports whether one of list is text.
func contains(list string, text string) bool {
	return slices.Contains(strings.Fields(list), text)
}
