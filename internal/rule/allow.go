package rule

import (
	"slices"
	"strings"
)

// allowsScript returns a rule that allows a part of the script if all of its simple
// commands are allowed; else the empty text.
func allowsScript(rules []*rule, text string) (by string) {
	// A rule without * may name a command as it stands.
	return (&allower{rules: rules}).script(text, 0)
}

type allower struct{ rules []*rule }

func (a *allower) script(text string, depth int) (by string) {
	if depth > maxDepth {
		return ""
	}
	commands, err := strict(text)
	if err != nil {
		return ""
	}
	for _, c := range commands {
		if by = a.command(c, depth); by == "" {
			return ""
		}
	}
	return by
}

// command returns the rule that allows a simple command.
func (a *allower) command(c command, depth int) string {
	if depth > maxDepth || contains(never, base(c.args[0].text)) {
		return ""
	}
	held, ok := a.held(c.args, depth)
	if !ok {
		return ""
	}
	// All assignments as the rule has them, or those that change nothing left out.
	var plain []word
	for _, w := range c.assigns {
		name, _, _ := strings.Cut(w.text, "=")
		if !contains(harmlessNames, name) {
			plain = append(plain, w)
		}
	}
	for _, assigns := range [][]word{c.assigns, plain} {
		words := slices.Concat(assigns, c.args)
		marks := append(make([]bool, len(assigns), len(words)), held...)
		for i := range assigns {
			marks[i] = true
		}
		for _, r := range a.rules {
			if r.words == nil {
				continue
			}
			// The program itself is spelled, or at least its folder is.
			marks[len(assigns)] = !inFolder(r.words[min(len(assigns), len(r.words)-1)])
			if matches(r.words, words, marks) {
				return r.text
			}
		}
	}
	return ""
}

// inFolder reports whether a pattern's word names a folder before its first star.
func inFolder(pattern word) bool {
	return len(pattern.stars) > 0 && strings.Contains(pattern.text[:pattern.stars[0]], "/")
}

// held marks the words of a command that * does not stand for: a rule must spell
// them. ok is false if no rule may allow the command.
func (a *allower) held(args []word, depth int) (marks []bool, ok bool) {
	marks = executes(args, true)
	name := base(args[0].text)
	all := func(from int) {
		for i := from; i < len(args); i++ {
			marks[i] = true
		}
	}
	switch o, wraps := wrappers[name]; {
	case contains(shells, name):
		script, reads, known := inline(args)
		switch {
		case reads:
			return nil, false
		case !known:
			all(1)
		case script > 0 && a.script(args[script].text, depth+1) == "":
			all(script)
		}
	case wraps:
		at, known := o.inner(args)
		switch {
		case !known:
			all(1)
		case at == len(args):
			if name == "env" || name == "xargs" || name == "exec" {
				break // prints, or does nothing
			}
			all(1)
		default:
			inner := command{args: args[at:]}
			if strings.ContainsAny(args[at].text, "=~{}%") || args[at].glob || contains(never, base(args[at].text)) {
				return nil, false
			}
			if _, runs := lookup(args[at].text); name == "xargs" && (runs || runsInput(args[at:])) {
				return nil, false // what it reads may be an option
			}
			if a.command(inner, depth+1) != "" {
				break // it is named by itself
			}
			more, ok := a.held(inner.args, depth+1)
			if !ok {
				return nil, false
			}
			copy(marks[at:], more)
			marks[at] = true
		}
	case contains(opaque, name) || contains(foreign, name):
		all(1)
	case contains(interpreters, name) && readsCode(args):
		return nil, false
	}
	return marks, true
}

// runsInput reports whether a program that gets further arguments by xargs may take
// them for a program or a script.
func runsInput(args []word) bool {
	name := base(args[0].text)
	_, wraps := wrappers[name]
	return wraps || contains(shells, name) || contains(foreign, name) || contains(opaque, name) || contains(interpreters, name) || contains(outward, name) || contains(never, name)
}

// readsCode reports whether an interpreter takes its program from stdin.
func readsCode(args []word) bool {
	for _, arg := range args[1:] {
		switch {
		case arg.text == "-" || strings.HasPrefix(arg.text, "/dev/") || strings.HasPrefix(arg.text, "/proc/"):
			return true
		case !strings.HasPrefix(arg.text, "-") || contains("--version --help --test -V -v -h", arg.text):
			return false
		}
	}
	return true
}

// matches reports whether the words of a pattern are those of a command. A * by
// itself stands for any number of words, one within a word for any text of it;
// neither stands for a word that is held.
func matches(pattern, words []word, held []bool) bool {
	failed := make([]bool, (len(pattern)+1)*(len(words)+1))
	var from func(p, w int) bool
	from = func(p, w int) bool {
		if p == len(pattern) {
			return w == len(words)
		}
		place := p*(len(words)+1) + w
		if failed[place] {
			return false
		}
		ok := false
		if pattern[p].text == "*" && len(pattern[p].stars) == 1 {
			ok = from(p+1, w) || w < len(words) && !held[w] && from(p, w+1)
		} else if w < len(words) {
			ok = matchesWord(pattern[p], words[w], held[w]) && from(p+1, w+1)
		}
		failed[place] = !ok
		return ok
	}
	return from(0, 0)
}

func matchesWord(pattern, w word, held bool) bool {
	if len(pattern.stars) == 0 {
		return pattern.text == w.text
	}
	// A rule's * is no way out of the folder that it names.
	if held && !namesOption(pattern) || dotted(w.text) || w.glob && (strings.HasPrefix(w.text, ".") || strings.Contains(w.text, "/.")) {
		return false
	}
	return globAt(pattern, w.text)
}

// namesOption reports whether a pattern spells an option, or a variable, and leaves
// its value open: --config=*.
func namesOption(pattern word) bool {
	return strings.Contains(pattern.text[:pattern.stars[0]], "=")
}

// globAt is Glob with the stars of a pattern's word; a quoted one is a character.
func globAt(pattern word, text string) bool {
	if len(pattern.stars) == 0 {
		return pattern.text == text
	}
	parts, from := []string{}, 0
	for _, at := range pattern.stars {
		parts = append(parts, pattern.text[from:at])
		from = at + 1
	}
	return inOrder(append(parts, pattern.text[from:]), text)
}
