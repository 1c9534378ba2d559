package rule

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mostSuggested is how many rules a person reads before answering.
const mostSuggested = 4

// Suggest returns allow rules for a request and others of its kind: the same command with
// other arguments where that is harmless to open, else the same command; the same tool in
// the same folders; the same host. They allow the request. Nil: no such rules do.
func Suggest(q Request) []string {
	var rules []string
	switch q.Kind {
	case KindShell:
		rules = suggestScript(q.Detail)
	case KindCommand:
		rules = []string{q.Tool + "(" + q.Detail + ")"}
	case KindFile:
		rules = suggestFiles(&q)
	case KindFetch:
		if u, err := url.Parse(q.Detail); err == nil && u.Hostname() != "" {
			rules = []string{q.Tool + "(" + domainPrefix + u.Hostname() + ")"}
		}
	default:
		rules = []string{q.Tool}
	}
	if len(rules) == 0 || len(rules) > mostSuggested || strings.Contains(q.Tool, "*") {
		return nil
	}
	set, err := New(rules, nil)
	if err != nil || set.Judge(q).Effect != Allowed {
		return nil
	}
	return rules
}

// Naming returns the allow rules that are about the tool of a request.
func (s *Set) Naming(q Request) []string {
	var found []string
	for _, r := range s.allow {
		if r.names(&q) {
			found = append(found, r.text)
		}
	}
	return found
}

// suggestScript returns a rule for each simple command of a script.
func suggestScript(text string) (rules []string) {
	commands, err := strict(text)
	if err != nil {
		return nil
	}
	for _, c := range commands {
		text := suggestCommand(c)
		if text == "" {
			return nil
		}
		if !slices.Contains(rules, text) {
			rules = append(rules, text)
		}
	}
	return rules
}

const (
	// bySubcommand are programs whose first argument says what they do.
	bySubcommand = "git go npm pnpm yarn bun cargo docker podman kubectl gh make gmake just task pip pip3 uv poetry bundle rake mvn gradle dotnet swift terraform helm brew apt apt-get"
	// byName are programs that only read or test, whatever their arguments say. Options
	// that run programs stay closed: see program.go.
	byName = "ls cat head tail wc grep egrep fgrep rg ag diff cmp stat file du df pwd date which tree echo printf true test " +
		"pytest jest vitest mocha eslint tsc mypy ruff gofmt staticcheck golangci-lint shellcheck"
)

// suggestCommand returns the widest of the rules above that allows a simple command;
// empty if none does.
func suggestCommand(c command) string {
	var front, words []string
	for _, w := range c.assigns {
		name, value, _ := strings.Cut(w.text, "=")
		quoted, err := syntax.Quote(value, syntax.LangBash)
		if err != nil {
			return ""
		}
		if !contains(harmlessNames, name) {
			front = append(front, name+"="+quoted)
		}
	}
	for _, w := range c.args {
		quoted, err := syntax.Quote(w.text, syntax.LangBash)
		if err != nil {
			return ""
		}
		if plain := patternWords(w.text); len(plain) == 1 && plain[0].text == w.text && len(plain[0].stars) == 0 {
			quoted = w.text
		}
		words = append(words, quoted)
	}
	var patterns [][]string
	switch name := base(c.args[0].text); {
	case contains(byName, name):
		patterns = append(patterns, []string{words[0], "*"})
	case contains(bySubcommand, name) && len(words) > 1 && !strings.HasPrefix(words[1], "-"):
		patterns = append(patterns, []string{words[0], words[1], "*"})
	}
	for _, pattern := range append(patterns, words) {
		r, err := parse("Bash(" + strings.Join(slices.Concat(front, pattern), " ") + ")")
		if err == nil && (&allower{rules: []*rule{r}}).command(c, 0) != "" {
			return r.text
		}
	}
	return ""
}

// suggestFiles returns a rule for each folder.
func suggestFiles(q *Request) (rules []string) {
	for _, file := range q.files() {
		folder := path.Dir(absolute(q, file))
		if rel, err := filepath.Rel(filepath.FromSlash(absolute(q, ".")), filepath.FromSlash(folder)); err == nil && !dotted(rel) {
			folder = "./" + filepath.ToSlash(rel)
			if rel == "." {
				folder = "."
			}
		}
		text := q.Tool + "(" + strings.TrimSuffix(folder, "/") + "/*)"
		if folder == "/" || q.Home != "" && folder == absolute(q, q.Home) || strings.Contains(folder, "*") {
			text = q.Tool + "(" + file + ")"
		}
		if !slices.Contains(rules, text) {
			rules = append(rules, text)
		}
	}
	return rules
}
