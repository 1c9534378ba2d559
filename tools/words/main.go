// Words checks the vocabulary of the repository: words.txt says which words and phrases
// must not appear in comments, string literals, names of Go declarations and Markdown
// files, and what to say.
//
// What was written before the check is counted by folder in allowance.txt. A folder with
// more than its count fails the check, with every place in it. A folder with fewer is
// named with the number to lower; -lower lowers them.
//
//	go run -C tools ./words [-lower] [-list FOLDER]
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func main() {
	lower := flag.Bool("lower", false, "lower the numbers in allowance.txt to what there is")
	list := flag.String("list", "", "print the places in `FOLDER`, such as internal/shim")
	flag.Parse()
	if err := run("..", filepath.Join("words", "words.txt"), filepath.Join("words", "allowance.txt"), *lower, *list); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(root, words, allowance string, lower bool, list string) error {
	rules, err := readRules(words)
	if err != nil {
		return err
	}
	allowed, header, err := readAllowance(allowance)
	if err != nil {
		return err
	}
	found, err := check(root, rules)
	if err != nil {
		return err
	}
	if list != "" {
		fmt.Println(strings.Join(found[list], "\n"))
		return nil
	}
	folders := map[string]bool{}
	for folder := range maps.Keys(found) {
		folders[folder] = true
	}
	for folder := range allowed {
		folders[folder] = true
	}
	raised := 0
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		have, may := len(found[folder]), allowed[folder]
		switch {
		case have > may:
			raised++
			for _, place := range found[folder] {
				fmt.Fprintln(os.Stderr, place)
			}
			fmt.Fprintf(os.Stderr, "%s: %d places, %d allowed\n", folder, have, may)
		case have < may && lower:
			allowed[folder] = have
		case have < may:
			fmt.Printf("words: lower %s in tools/%s from %d to %d (make words)\n", folder, filepath.ToSlash(allowance), may, have)
		}
	}
	if raised > 0 {
		return fmt.Errorf("%d folders have new words that tools/%s replaces", raised, filepath.ToSlash(words))
	}
	if lower {
		return writeAllowance(allowance, header, allowed)
	}
	return nil
}

// rule is one line of words.txt.
type rule struct {
	match, except *regexp.Regexp
	say           string
}

func readRules(path string) ([]rule, error) {
	var rules []rule
	err := readLines(path, func(line string) error {
		fields := strings.Split(line, "\t")
		if len(fields) < 2 || len(fields) > 3 {
			return fmt.Errorf("%q: expected 2 or 3 fields with tabs between them", line)
		}
		pattern := strings.ReplaceAll(fields[0], " ", `\s+`)
		match, err := regexp.Compile(`(?i)\b(?:` + pattern + `)`)
		if err != nil {
			return err
		}
		r := rule{match: match, say: fields[1]}
		if len(fields) == 3 {
			if r.except, err = regexp.Compile("(?i)" + fields[2]); err != nil {
				return err
			}
		}
		rules = append(rules, r)
		return nil
	})
	return rules, err
}

// readLines calls take with each line that is not empty and not a comment.
func readLines(path string, take func(line string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := take(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	return lines.Err()
}

func readAllowance(path string) (allowed map[string]int, header string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			header += line
		}
	}
	allowed = map[string]int{}
	err = readLines(path, func(line string) error {
		folder, number, _ := strings.Cut(line, "\t")
		count, err := strconv.Atoi(number)
		if err != nil || count < 0 {
			return fmt.Errorf("%q: expected FOLDER, a tab and a number", line)
		}
		allowed[folder] = count
		return nil
	})
	return allowed, header, err
}

func writeAllowance(path, header string, allowed map[string]int) error {
	text := header
	for _, folder := range slices.Sorted(maps.Keys(allowed)) {
		if allowed[folder] > 0 {
			text += fmt.Sprintf("%s\t%d\n", folder, allowed[folder])
		}
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// check returns the places of wrong words, by folder.
func check(root string, rules []rule) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			own := path == filepath.Join(root, "tools", "words") // its tests need the words
			if own || path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		var texts []text
		switch filepath.Ext(name) {
		case ".go":
			texts, err = goTexts(path)
		case ".md":
			var content []byte
			content, err = os.ReadFile(path)
			texts = []text{{1, string(content)}}
		default:
			return nil
		}
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		short = filepath.ToSlash(short)
		folder, _, ok := cutLast(short, "/")
		if !ok {
			folder = "."
		}
		for _, t := range texts {
			for _, r := range rules {
				found[folder] = append(found[folder], r.places(short, t)...)
			}
		}
		return nil
	})
	return found, err
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// text is what a person reads, and the line that it begins in.
type text struct {
	line int
	text string
}

// places names each place of the rule's words, and what to say there.
func (r rule) places(file string, t text) (places []string) {
	for _, at := range r.match.FindAllStringIndex(t.text, -1) {
		end := at[1]
		for end < len(t.text) && isLetter(t.text[end]) && isLetter(t.text[end-1]) {
			end++ // the match is part of a longer word
		}
		words := t.text[at[0]:at[1]]
		around := t.text[at[0]:min(len(t.text), end+12)]
		if end > at[1] || r.except != nil && r.except.MatchString(around) {
			continue
		}
		line := t.line + strings.Count(t.text[:at[0]], "\n")
		places = append(places, fmt.Sprintf("%s:%d: %q: say %s", file, line, strings.Join(strings.Fields(words), " "), r.say))
	}
	return places
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// goTexts returns comments, string literals and, split into words, the names that a Go
// file declares.
func goTexts(path string) (texts []text, err error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if generated.Match(source) {
		return nil, nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(at token.Pos, content string) {
		texts = append(texts, text{set.Position(at).Line, content})
	}
	for _, group := range file.Comments {
		var lines []string
		for _, c := range group.List {
			content := c.Text
			if rest, ok := strings.CutPrefix(content, "//"); ok {
				content = rest
			} else {
				content = strings.TrimSuffix(content[2:], "*/")
			}
			lines = append(lines, content)
		}
		add(group.Pos(), strings.Join(lines, "\n"))
	}
	declared := func(names ...*ast.Ident) {
		for _, name := range names {
			add(name.Pos(), split(name.Name))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			declared(n.Names...)
			if n.Type != nil {
				ast.Inspect(n.Type, func(inner ast.Node) bool {
					if field, ok := inner.(*ast.Field); ok {
						declared(field.Names...)
					}
					return true
				})
			}
			return false // its tag is no text
		case *ast.FuncDecl:
			declared(n.Name)
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.ValueSpec:
			declared(n.Names...)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				content := n.Value[1 : len(n.Value)-1]
				if n.Value[0] == '"' {
					if content, err = strconv.Unquote(n.Value); err != nil {
						return false
					}
				}
				add(n.Pos(), content)
			}
		}
		return true
	})
	return texts, nil
}

// split writes a name as words: "killTree" as "kill Tree".
func split(name string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range name {
		if r == '_' || unicode.IsUpper(r) && !unicode.IsUpper(before) {
			b.WriteByte(' ')
		}
		if r != '_' {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}
