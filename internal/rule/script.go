package rule

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxCommand is the longest command that is looked at.
	maxCommand = 32 << 10
	// maxDepth is how deep commands may be in commands: sh -c 'sh -c …'.
	maxDepth = 6
	// maxCommands is how many commands of a script are looked at.
	maxCommands = 256
	// maxWords is how long a simple command may be.
	maxWords = 512
)

// word is one of a command, as the program gets it.
type word struct {
	text    string
	dynamic bool  // a part of it is not known before it runs
	glob    bool  // it has * ? or [ that the shell expands
	braces  bool  // {a,b}: it may become several
	stars   []int // of a pattern: where text has a * that stands for any text
}

// command is a simple command: assignments, a program and its arguments.
type command struct {
	assigns  []word
	args     []word
	redirect bool // some of its output goes to a file
	guess    bool // it may begin here, in the arguments of another
}

// parseShell reads a script in one dialect. The parser is not ours, so that a panic
// of it must not be one of the host.
func parseShell(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errUnreadable
		}
	}()
	if len(text) > maxCommand {
		return nil, errUnreadable
	}
	if deep(text) {
		return nil, errUnreadable
	}
	return syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
}

// deep reports whether brackets are nested deeper than any person would: the parser
// calls itself for each.
func deep(text string) bool {
	return strings.Count(text, "(") > 200 || strings.Count(text, "{") > 200 || strings.Count(text, "`") > 200
}

var errUnreadable = fmt.Errorf("the command cannot be read")

// odd reports whether a text has characters that shells, terminals and people read
// differently.
func odd(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		switch {
		case r == ' ' || r == '\t' || r == '\n':
			return false
		case r < 0x20 || r == 0x7f:
			return true
		}
		return r > 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) && r >= 0xfe00)
	})
}

// literal reads a word as the program will get it.
func literal(w *syntax.Word) word {
	var out word
	var b strings.Builder
	for _, part := range w.Parts {
		out.part(&b, part, false)
	}
	out.text = b.String()
	return out
}

func (w *word) part(b *strings.Builder, part syntax.WordPart, quoted bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		w.lit(b, part.Value, quoted)
	case *syntax.SglQuoted:
		if part.Dollar || strings.HasSuffix(part.Value, "\\") {
			w.dynamic = true // shells differ
		}
		b.WriteString(part.Value)
	case *syntax.DblQuoted:
		if part.Dollar {
			w.dynamic = true
		}
		for _, inner := range part.Parts {
			w.part(b, inner, true)
		}
	default:
		w.dynamic = true
	}
}

func (w *word) lit(b *strings.Builder, text string, quoted bool) {
	open := -1
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			next := text[i+1]
			if next == '\n' {
				i++
				continue
			}
			if quoted && !strings.ContainsRune("$`\"\\", rune(next)) {
				break
			}
			i++
			b.WriteByte(next)
			continue
		case quoted:
		case c == '*':
			w.glob = true
			w.stars = append(w.stars, b.Len())
		case c == '?' || c == '[':
			w.glob = true
		case c == '{':
			open = i
		case open >= 0 && (c == ',' || strings.HasPrefix(text[i:], "..")):
			w.braces = true
		}
		b.WriteByte(c)
	}
	// A brace may hold quoted pieces, which end the text that is seen here.
	if open >= 0 && !strings.Contains(text[open:], "}") {
		w.braces = true
	}
}

// strict reads a script for allow rules. It gives all simple commands, or an error
// if there is anything in it of which the commands do not tell what it does.
func strict(text string) ([]command, error) {
	if odd(text) {
		return nil, fmt.Errorf("it has characters that are read in different ways")
	}
	var first []command
	for i, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangZsh} {
		file, err := parseShell(text, lang)
		if err != nil {
			return nil, err
		}
		r := &reader{}
		r.statements(file.Stmts)
		if r.err != nil {
			return nil, r.err
		}
		if i == 0 {
			first = r.commands
		} else if !slices.EqualFunc(first, r.commands, sameCommand) {
			return nil, fmt.Errorf("shells read it differently")
		}
	}
	if len(first) == 0 {
		return nil, fmt.Errorf("there is no command in it")
	}
	return first, nil
}

func sameCommand(a, b command) bool {
	same := func(a, b word) bool { return a.text == b.text }
	return slices.EqualFunc(a.assigns, b.assigns, same) && slices.EqualFunc(a.args, b.args, same)
}

// reader collects the simple commands of a script whose every part is plain.
type reader struct {
	commands []command
	err      error
}

func (r *reader) refuse(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("it has %s", what)
	}
}

func (r *reader) statements(list []*syntax.Stmt) {
	for _, s := range list {
		r.statement(s)
	}
}

func (r *reader) statement(s *syntax.Stmt) {
	if s == nil || r.err != nil {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		r.refuse("a command in the background")
	}
	for _, redirect := range s.Redirs {
		if !plainRedirect(redirect) {
			r.refuse("a redirection to a file")
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c)
	case *syntax.BinaryCmd:
		if c.Op == syntax.PipeAll {
			r.refuse("|&")
		}
		r.statement(c.X)
		r.statement(c.Y)
	case *syntax.Subshell:
		r.statements(c.Stmts)
	case *syntax.Block:
		r.statements(c.Stmts)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			r.statements(c.Cond)
			r.statements(c.Then)
		}
	case *syntax.WhileClause:
		r.statements(c.Cond)
		r.statements(c.Do)
	case *syntax.ForClause:
		loop, ok := c.Loop.(*syntax.WordIter)
		if !ok || c.Select || c.Braces {
			r.refuse("a loop of an unusual form")
			return
		}
		for _, item := range loop.Items {
			if literal(item).dynamic {
				r.refuse("an expansion")
			}
		}
		if contains(dangerousNames, loop.Name.Value) || dangerous(loop.Name.Value) {
			r.refuse("a variable that changes what runs")
		}
		r.statements(c.Do)
	case *syntax.TimeClause:
		r.statement(c.Stmt)
	default:
		r.refuse("a construct that rules do not cover")
	}
}

func (r *reader) call(c *syntax.CallExpr) {
	var found command
	for _, a := range c.Assigns {
		if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
			r.refuse("an assignment of an unusual form")
			return
		}
		value := word{}
		if a.Value != nil {
			value = literal(a.Value)
		}
		if value.dynamic {
			r.refuse("an expansion")
		}
		value.text = a.Name.Value + "=" + value.text
		found.assigns = append(found.assigns, value)
	}
	args := c.Args
	if len(args) > 1 && len(c.Assigns) == 0 && args[0].Lit() == "time" { // a keyword in some shells
		args = args[1:]
		if len(args) > 1 && args[0].Lit() == "-p" {
			args = args[1:]
		}
	}
	for _, w := range args {
		arg := literal(w)
		if arg.dynamic || arg.braces {
			r.refuse("an expansion")
		}
		found.args = append(found.args, arg)
	}
	if len(found.args) == 0 {
		r.refuse("an assignment by itself")
		return
	}
	if len(found.args)+len(found.assigns) > maxWords {
		r.refuse("too many arguments")
	}
	program := found.args[0]
	if program.glob || program.text == "" || strings.ContainsAny(program.text, "=~{}%") {
		r.refuse("a program that is not named plainly")
	}
	r.commands = append(r.commands, found)
}

// plainRedirect reports whether a redirection is to /dev/null or between the three
// streams.
func plainRedirect(r *syntax.Redirect) bool {
	if r.Hdoc != nil || r.Word == nil || r.N != nil && !contains("0 1 2", r.N.Value) {
		return false
	}
	to := literal(r.Word)
	if to.dynamic || to.glob || to.braces {
		return false
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn:
		return to.text == "/dev/null"
	case syntax.DplOut, syntax.DplIn:
		return contains("0 1 2", to.text)
	}
	return false
}

// patternWords reads the pattern of a rule as a plain command; nil if it is something else. A
// :* at its end is a further word, as in the rules of Claude Code.
func patternWords(pattern string) []word {
	if rest, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = rest + " *"
	}
	if odd(pattern) {
		return nil
	}
	file, err := parseShell(pattern, syntax.LangBash)
	if err != nil || len(file.Stmts) != 1 {
		return nil
	}
	s := file.Stmts[0]
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Background || s.Negated || len(s.Redirs) > 0 {
		return nil
	}
	r := &reader{}
	var words []word
	for _, a := range c.Assigns {
		if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
			return nil
		}
		value := word{}
		if a.Value != nil {
			value = literal(a.Value)
		}
		prefix := a.Name.Value + "="
		for i := range value.stars {
			value.stars[i] += len(prefix)
		}
		value.text = prefix + value.text
		words = append(words, value)
	}
	for _, w := range c.Args {
		words = append(words, literal(w))
	}
	for _, w := range words {
		if w.dynamic {
			return nil
		}
	}
	if r.err != nil || len(c.Args) == 0 {
		return nil
	}
	return words
}
