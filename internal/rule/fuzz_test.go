package rule

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

var fuzzed = []string{"Bash(go test *)", "Bash(echo *)", "Bash(sh -c *)", "Bash(timeout *)", "Bash(cat src/*)"}

// named reports whether every simple command of an approved script is one that the
// rules name, by a reading of its own.
func named(t *testing.T, text string, depth int) bool {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil || depth > 10 {
		return false
	}
	ok := true
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.FuncDecl, *syntax.CoprocClause, *syntax.DeclClause,
			*syntax.LetClause, *syntax.ArithmCmd, *syntax.ExtGlob, *syntax.TestClause:
			ok = false
		case *syntax.Redirect:
			if to := node.Word.Lit(); node.Hdoc != nil || to != "/dev/null" && to != "1" && to != "2" && to != "0" {
				ok = false
			}
		case *syntax.Stmt:
			ok = ok && !node.Background && !node.Coprocess && !node.Disown
		case *syntax.CallExpr:
			var args []string
			for _, w := range node.Args {
				args = append(args, literal(w).text)
			}
			ok = ok && namedCommand(t, args, depth)
		}
		return ok
	})
	return ok
}

func namedCommand(t *testing.T, args []string, depth int) bool {
	switch {
	case len(args) == 0:
		return false
	case args[0] == "echo":
		return true
	case args[0] == "go" && len(args) > 1 && args[1] == "test":
		for _, arg := range args {
			if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); strings.HasPrefix(arg, "-") && (name == "exec" || name == "toolexec") {
				return false
			}
		}
		return true
	case args[0] == "cat" && len(args) == 2:
		return strings.HasPrefix(args[1], "src/") && !strings.Contains(args[1], "..")
	case args[0] == "sh" && len(args) > 2 && args[1] == "-c":
		return named(t, args[2], depth+1)
	case args[0] == "timeout" && len(args) < 3:
		return true // it runs nothing
	case args[0] == "timeout":
		for i := 2; i < len(args); i++ {
			if namedCommand(t, args[i:], depth+1) {
				return true
			}
		}
	}
	return false
}

func check(t *testing.T, allow, deny *Set, text string) (allowed bool) {
	allowed = allow.Judge(shell(text)).Effect == Allowed
	if allowed && !named(t, text, 0) {
		t.Errorf("%q is allowed", text)
	}
	deny.Judge(shell(text)) // must not panic
	return allowed
}

// Pieces of commands in any order: what is allowed is named.
func TestRandomCommands(t *testing.T) {
	pieces := []string{"go test", "go test ./...", "echo", "echo x", "curl evil", "sh -c", "sh -c 'go test'", "sh -c 'curl evil'", "timeout 5", "cat src/x", "cat src/../x", "-exec",
		"-exec=x", "--toolexec", ";", "&&", "||", "|", "&", "\n", "(", ")", "{", "}", "`", "$(", "'", "\"", "\\", "\\\n", " ", " ", " ", " ", "  ", "\t", ">", ">/dev/null", "2>&1", "<", "<<", "<<<", "EOF", "$x", "${", "$((", "))",
		"[[", "]]", "if", "then", "fi", "while", "do", "done", "for x in a", "case", "esac", "in", "!", "time", "function", "f()", "#", "~", "*", "?", "[", "]", "=", "x=1", "PATH=/x", "{a,b}", ",", "-c", "--", "$'", "$\"", "\u00a0", "\r", "|&", "&>", ">&", "@(", "=(", "<("}
	allow, deny := set(t, fuzzed, nil), set(t, nil, []string{"Bash(curl *)", "Bash(rm -rf *)"})
	random := rand.New(rand.NewPCG(1, 2))
	allowed, rounds := 0, 10000
	if testing.Short() {
		rounds = 2000
	}
	for range rounds {
		var b strings.Builder
		for range 1 + random.IntN(9) {
			b.WriteString(pieces[random.IntN(len(pieces))])
			if random.IntN(2) == 0 {
				b.WriteByte(' ')
			}
		}
		if check(t, allow, deny, b.String()) {
			allowed++
		}
	}
	if allowed == 0 {
		t.Error("nothing was allowed: the test shows nothing")
	}
	t.Logf("%d of %d allowed", allowed, rounds)
}

func FuzzJudge(f *testing.F) {
	for _, text := range []string{"go test ./...", "echo x; go test", "sh -c 'go test && echo x'", "timeout 5 go test", "cat src/x", "go test $(curl evil)", "echo {a,b} > x", "curl evil",
		"sh -c \"sh -c 'echo x'\"", "if echo x; then go test; fi", "go test 2>&1 | echo", "((", "'", "@go test \r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		check(t, set(t, fuzzed, nil), set(t, nil, []string{"Bash(curl *)", "Bash(rm -rf *)", "Bash(x*)"}), text)
		_, _ = New([]string{text}, []string{text})
		_, _ = New([]string{"Bash(" + text + ")"}, nil)
	})
}

// Rules are what a user typed or a settings file says, requests what an agent asks for.
// Nothing is allowed that a deny rule of the same words means, and nothing without a rule.
func FuzzRules(f *testing.F) {
	for _, seed := range [][3]string{
		{"Edit(src/*)", KindFile, "src/a.go"}, {"Write(~/x)", KindFile, "/home/u/x"}, {"WebFetch(domain:example.com)", KindFetch, "https://a.example.com/x"},
		{"WebFetch(https://example.com/docs/*)", KindFetch, "http://example.com:80/docs/../x"}, {"mcp__*(x*)", "", "xyz"}, {"Bash(rm build/*)", KindShell, "rm build/a"},
		{"Bash(Get-Item *)", KindCommand, "Get-Item x"}, {"Edit(../*)", KindFile, "../x"}, {"A(((", KindFile, "\x00"}, {"WebFetch(domain:*.x)", KindFetch, "https://[::1]%zone/"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, text, kind, detail string) {
		allow, err := New([]string{text}, nil)
		if err != nil {
			return
		}
		tool, _, _ := strings.Cut(text, "(")
		q := Request{Tool: strings.ReplaceAll(tool, "*", "x"), Kind: kind, Detail: detail, Paths: []string{detail}, Cwd: "/w", Home: "/home/u"}
		deny, err := New([]string{text}, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		neither, _ := New(nil, nil)
		allowed, denied := allow.Judge(q).Effect, deny.Judge(q).Effect
		if denied == Allowed || allowed == Allowed && denied != Denied && denied != Unclear {
			t.Errorf("%q allows %+v (%v), and as a deny rule gives %v", text, q, allowed, denied)
		}
		if effect := neither.Judge(q).Effect; effect != Open {
			t.Errorf("without a rule: %v", effect)
		}
	})
}
