package rule

import (
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// script is all that can be seen of what a command runs. It is for deny rules, which
// want to see more rather than less.
type script struct {
	text     string
	commands []command
	unclear  string // what cannot be seen; empty: nothing
}

func analyse(text string) *script {
	s := &script{text: text}
	if odd(text) {
		s.doubt("it has characters that are read in different ways")
	}
	s.read(text, 0)
	return s
}

func (s *script) doubt(why string) {
	if s.unclear == "" {
		s.unclear = why
	}
}

// read takes in the commands of a text, those of substitutions and functions too.
func (s *script) read(text string, depth int) {
	if depth > maxDepth || len(s.commands) > maxCommands {
		s.doubt("commands are nested too deeply")
		return
	}
	file, err := parseShell(text, syntax.LangBash)
	if err != nil {
		s.doubt("it cannot be parsed")
		// What comes before the error may say enough.
		s.commands = append(s.commands, rough(text)...)
		return
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			if c, ok := node.Cmd.(*syntax.CallExpr); ok {
				s.call(c, node.Redirs, depth)
			}
		case *syntax.DeclClause:
			for _, a := range node.Args {
				s.assigned(a)
			}
		case *syntax.CoprocClause, *syntax.LetClause, *syntax.TestDecl:
			s.doubt("it has a construct that is not looked into")
		}
		return true
	})
}

// rough splits a text that is no script into words.
func rough(text string) []command {
	split := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";|&()<>`$\"'{}", r) }
	var found []command
	words := strings.FieldsFunc(text, split)
	words = words[:min(len(words), maxWords)]
	for i := range words[:min(len(words), 64)] {
		c := command{}
		for _, w := range words[i:] {
			c.args = append(c.args, word{text: strings.ReplaceAll(w, "\\", "")})
		}
		found = append(found, c)
	}
	return found
}

func (s *script) assigned(a *syntax.Assign) {
	if a.Name != nil && (contains(dangerousNames, a.Name.Value) || dangerous(a.Name.Value)) {
		s.doubt("it sets " + a.Name.Value + ", which changes what runs")
	}
}

func (s *script) call(c *syntax.CallExpr, redirects []*syntax.Redirect, depth int) {
	var found command
	for _, a := range c.Assigns {
		s.assigned(a)
		if a.Value != nil {
			found.assigns = append(found.assigns, literal(a.Value))
		}
	}
	for _, w := range c.Args {
		arg := literal(w)
		arg.dynamic = arg.dynamic || arg.braces
		found.args = append(found.args, arg)
	}
	for _, r := range redirects {
		found.redirect = found.redirect || !plainRedirect(r)
	}
	s.add(found, depth)
}

// add takes in a simple command, and what it runs.
func (s *script) add(c command, depth int) {
	if depth > maxDepth || len(s.commands) > maxCommands {
		s.doubt("commands are nested too deeply")
		return
	}
	if len(c.args) > maxWords {
		s.doubt("it has too many arguments")
		c.args = c.args[:maxWords]
	}
	s.commands = append(s.commands, c)
	if len(c.args) == 0 {
		return
	}
	program := c.args[0]
	if program.dynamic || program.glob || program.text == "" || strings.ContainsAny(program.text, "{}%~") {
		s.doubt("what it runs is not named plainly")
		return
	}
	name := bare(program.text)
	dynamic := false
	for _, arg := range c.args[1:] {
		dynamic = dynamic || arg.dynamic
	}
	switch {
	case name == "eval":
		if dynamic {
			s.doubt("eval runs what is not known")
			return
		}
		s.read(joined(c.args[1:]), depth+1)
	case name == "trap":
		if dynamic {
			s.doubt("trap runs what is not known")
		} else if len(c.args) > 1 && !strings.HasPrefix(c.args[1].text, "-") {
			s.read(c.args[1].text, depth+1)
		}
	case contains(never, name):
		s.doubt(name + " changes what later commands mean")
	case contains(shells, name):
		at, reads, ok := inline(c.args)
		switch {
		case !ok || reads || dynamic:
			s.doubt(name + " runs what is not known")
		case at > 0:
			s.read(c.args[at].text, depth+1)
		}
	case contains(interpreters, name) && (readsCode(c.args) || marked(executes(c.args, name == "deno"))):
		s.doubt(name + " runs code that is not looked into")
	case s.wraps(name, c.args):
		s.behind(name, c.args, dynamic, depth)
	case marked(executes(c.args, false)):
		s.doubt("an option of " + name + " may run something")
	}
}

func marked(marks []bool) bool {
	for _, m := range marks {
		if m {
			return true
		}
	}
	return false
}

func (s *script) wraps(name string, args []word) bool {
	_, ok := wrappers[name]
	return ok || contains(opaque, name) || contains(foreign, name) || contains(outward, name) || name == "-"
}

// behind takes each word behind a wrapper for the beginning of what it runs.
func (s *script) behind(name string, args []word, dynamic bool, depth int) {
	outside := contains(outward, name)
	finds := contains("find gfind fd fdfind", name)
	if !outside {
		s.commands[len(s.commands)-1].guess = true // its words are looked at below
	}
	switch {
	case dynamic && !outside, contains(foreign, name):
		s.doubt(name + " runs what is not known")
	case name == "xargs" || name == "parallel":
		for i, arg := range args[1:] {
			if name == "parallel" || strings.HasPrefix(arg.text, "-I") || strings.HasPrefix(arg.text, "-i") || strings.HasPrefix(arg.text, "-J") || strings.HasPrefix(arg.text, "--rep") {
				s.doubt(name + " makes commands of its input")
			}
			if !strings.HasPrefix(arg.text, "-") && runsInput(args[1+i:]) {
				s.doubt(name + " makes commands of its input")
			}
		}
	case name == "command" && len(args) > 1 && (args[1].text == "-v" || args[1].text == "-V"):
		s.commands[len(s.commands)-1].guess = true // it only looks
		return
	case outside && !finds && marked(executes(args, false)):
		s.doubt("an option of " + name + " may run something")
	}
	from := 1
	if contains("find gfind fd fdfind git npm pnpm yarn bun uv conda nix bundle poetry", name) {
		// Most of their words are names of files, branches and packages.
		from = len(args)
		for i, arg := range args {
			if i > 0 && (contains("-exec -execdir -ok -okdir -x -X --exec --exec-batch --extcmd run foreach exec x dlx --run --command -c", arg.text)) {
				from = min(from, i+1)
			}
		}
	}
	for i := from; i < len(args) && len(s.commands) <= maxCommands; i++ {
		text := args[i].text
		if strings.HasPrefix(text, "-S") || strings.HasPrefix(text, "--split") || strings.HasPrefix(text, "-vS") {
			s.doubt(name + " splits a text into a command")
		}
		if variable, _, ok := strings.Cut(text, "="); ok && name == "env" {
			if contains(dangerousNames, variable) || dangerous(variable) {
				s.doubt("it sets " + variable + ", which changes what runs")
			}
			continue
		}
		if strings.HasPrefix(text, "-") || args[i].dynamic {
			continue
		}
		if i == from && strings.ContainsAny(text, "{}%") {
			s.doubt("what it runs is not named plainly")
		}
		if strings.ContainsAny(text, " \t\n;|&`$<>") {
			s.read(text, depth+1)
			continue
		}
		inner := bare(text)
		_, wraps := wrappers[inner]
		if wraps || contains(shells, inner) || contains(opaque, inner) || contains(never, inner) || contains(interpreters, inner) && !outside {
			s.add(command{args: args[i:]}, depth+1)
			continue
		}
		s.commands = append(s.commands, command{args: args[i:], guess: true})
	}
}

// bare is a program's name for deny rules: without folder, in small letters.
func bare(name string) string {
	return fold(base(strings.TrimPrefix(name, "=")))
}

func joined(words []word) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, " ")
}

// readers only read their arguments: a program that is named there is not run.
const readers = "echo printf grep egrep fgrep rg ag ls cat head tail wc cd mkdir rmdir rm touch which type man whatis test [ true false : diff cmp uniq cut tr " +
	"apt apt-get brew dnf yum apk pacman pip pip3 stat file du df basename dirname realpath readlink pwd date sleep jq sort git gh export local"

// deniesScript says whether a deny rule means a command.
func (r *rule) deniesScript(s *script) (Effect, string) {
	pattern := make([]word, len(r.words))
	for i, w := range r.words {
		pattern[i] = word{text: fold(w.text), stars: w.stars}
		if len(pattern[i].text) != len(w.text) { // letters of other lengths move the stars
			pattern[i] = w
		}
	}
	// Assignments in front of a rule's program are no part of what it forbids.
	weak := ""
	for _, c := range s.commands {
		if len(c.args) == 0 {
			continue
		}
		args := make([]word, len(c.args))
		for i, w := range c.args {
			args[i] = word{text: fold(w.text), dynamic: w.dynamic}
		}
		args[0].text = bare(c.args[0].text)
		if len(pattern) > 0 && generous(pattern, args) {
			return Denied, ""
		}
		if text := joined(args); Glob(fold(r.pattern), text) || Glob(fold(r.pattern), fold(joined(c.args))) {
			return Denied, ""
		}
		if len(pattern) > 0 && similar(pattern, args) {
			weak = "its arguments may be those that the rule names"
		}
	}
	if weak == "" && s.unclear != "" {
		weak = s.unclear
	}
	if weak == "" && len(pattern) > 0 && s.mentions(pattern[0]) {
		weak = "it names " + pattern[0].text
	}
	if weak == "" && len(pattern) == 0 {
		weak = "the rule is no plain command"
	}
	if weak != "" {
		return Unclear, weak
	}
	return Open, ""
}

// generous is matches without reserve: nothing is held.
func generous(pattern, args []word) bool {
	first := pattern[0]
	first.text, first.stars = bareStars(first)
	return matchesLoose(append([]word{first}, pattern[1:]...), args)
}

// bareStars is a pattern's program without its folder.
func bareStars(w word) (string, []int) {
	cut := strings.LastIndex(w.text, "/") + 1
	var stars []int
	for _, at := range w.stars {
		if at >= cut {
			stars = append(stars, at-cut)
		}
	}
	return w.text[cut:], stars
}

func matchesLoose(pattern, args []word) bool {
	failed := make([]bool, (len(pattern)+1)*(len(args)+1))
	var from func(p, w int) bool
	from = func(p, w int) bool {
		if p == len(pattern) {
			return w == len(args)
		}
		place := p*(len(args)+1) + w
		if failed[place] {
			return false
		}
		ok := false
		if pattern[p].text == "*" && len(pattern[p].stars) == 1 {
			ok = from(p+1, w) || w < len(args) && from(p, w+1)
		} else if w < len(args) {
			ok = globAt(pattern[p], args[w].text) && from(p+1, w+1)
		}
		failed[place] = !ok
		return ok
	}
	return from(0, 0)
}

// similar reports whether the command is of the rule's program, and what the rule
// names, options aside, is among its arguments in that order.
func similar(pattern, args []word) bool {
	name, stars := bareStars(pattern[0])
	if !globAt(word{text: name, stars: stars}, args[0].text) {
		return false
	}
	options, some, next := false, false, 1
	for _, p := range pattern[1:] {
		if strings.HasPrefix(p.text, "-") {
			options = true
			continue
		}
		if p.text == "*" {
			continue
		}
		for ; next < len(args); next++ {
			if args[next].dynamic || globAt(p, args[next].text) {
				break
			}
		}
		if next >= len(args) {
			return false
		}
		if !args[next].dynamic {
			next++
		}
	}
	for _, arg := range args[1:] {
		some = some || arg.dynamic || strings.HasPrefix(arg.text, "-")
	}
	return !options || some
}

// mentions reports whether a program's name stands among the arguments of a command
// that may run it.
func (s *script) mentions(program word) bool {
	name, stars := bareStars(program)
	if len(stars) > 0 || name == "" {
		return false
	}
	for _, c := range s.commands {
		if c.guess {
			continue
		}
		words := c.assigns
		if len(c.args) > 0 && (c.redirect || !contains(readers, bare(c.args[0].text))) {
			words = append(words[:len(words):len(words)], c.args[1:]...)
		}
		for _, w := range words {
			if hasToken(fold(w.text), name) {
				return true
			}
		}
	}
	return false
}

func hasToken(text, name string) bool {
	part := func(b byte) bool {
		return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !part(text[start-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
		from = start + 1
	}
}
