package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// object is a JSON object as the contract describes it: an event, an input line, or a
// part of one.
type object struct {
	name     string // of its definition: snake_case
	goName   string
	goFields map[string]string // their names on the wire
	doc      string
	fields   []field
}

// field is a member of an object.
type field struct {
	name     string
	doc      string
	optional bool // may be absent
	kind     kind
}

// kind is what values a field has.
type kind struct {
	base     string   // string, boolean, integer, number, any, array or object, or the name of another object
	null     bool     // or null: unknown
	items    *kind    // of an array
	words    []string // that a string has today; later versions may add some
	minimum  int      // of an integer, if not 0
	pattern  string   // of a string
	format   string
	constant string // the only value of a string
}

var (
	text = kind{base: "string"}
	any_ = kind{base: "any"}
)

// docs say of fields what the comments of the Go types do not, or say in Go's words.
var docs = map[string]string{
	"approval_request.risk_level": "",
	"approval_request.tool_kind":  "How to read detail: shell is a command, word for word, for a POSIX shell; command is about a command; file is about paths, or else detail; fetch is an address. Absent for any other tool.",
	"approval_request.paths":      "The files that the tool will touch, all of them; absent if detail is the only one.",
	"approval_denied.reason":      "",
	"debug.level":                 "",
	"input_required.source":       "",
	"log.source":                  "A stream of the agent, its terminal, or a stored session.",
	"timeout.kind":                "",
}

// source is what the Go types say.
type source struct {
	events  []object // in the order of pluginapi/event.go
	parts   []object // that events refer to
	structs map[string]*ast.StructType
	words   map[string][]string // by the path of a field, event.field
}

// words of strings that come from a fixed list. The Go types have them as strings.
func wordsOf(t *testing.T) map[string][]string {
	constants := codeConstants(t)
	states, reasons := constants("State"), append(constants("Reason"), host.ReasonBudget)
	var codes []string
	for _, info := range code.All {
		codes = append(codes, string(info.Code))
	}
	return map[string][]string{
		"timeout.kind":                {"run", "inactivity"},
		"input_required.source":       {"agent", "tool"},
		"approval_request.risk_level": {"low", "medium", "high"},
		"approval_request.tool_kind":  {"shell", "command", "file", "fetch"},
		"stream_fallback.capability":  {"text", "thinking", "tool_calls"},
		"debug.level":                 {"verbose", "info", "warn"},
		"log.source":                  {"stdout", "stderr", "screen", "session"},
		"todo_item.status":            {"pending", "in_progress", "completed"},
		"error.code":                  codes,
		"failure.code":                codes,
		"retry.code":                  codes,
		"run_end.code":                append([]string{""}, codes...),
		"run_end.state":               states[5:],
		"run_end.reason":              reasons,
		"run_state.from":              append([]string{""}, states...),
		"run_state.to":                states,
	}
}

// codeConstants returns the values of pluginapi/code's constants by what their names
// begin with, in their order.
func codeConstants(t *testing.T) func(prefix string) []string {
	file := parse(t, "pluginapi", "code", "run.go")
	return func(prefix string) (values []string) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, prefix) {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
		if len(values) < 5 {
			t.Fatalf("only %d constants of pluginapi/code begin with %s", len(values), prefix)
		}
		return values
	}
}

func root(path ...string) string {
	return filepath.Join(append([]string{"..", ".."}, path...)...)
}

func parse(t *testing.T, path ...string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), root(path...), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// read reads pluginapi/event.go.
func read(t *testing.T) *source {
	t.Helper()
	file, names := parse(t, "pluginapi", "event.go"), map[string]string{}
	constants := map[string]string{}
	ast.Inspect(parse(t, "pluginapi", "code", "event.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			constants[spec.Names[0].Name], _ = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	s := &source{structs: map[string]*ast.StructType{}, words: wordsOf(t)}
	var specs []*ast.TypeSpec
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "EventType" && d.Recv != nil {
				constant := d.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.SelectorExpr)
				names[d.Recv.List[0].Type.(*ast.Ident).Name] = constants[constant.Sel.Name]
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					if body, ok := spec.Type.(*ast.StructType); ok {
						if spec.Doc == nil && len(d.Specs) == 1 {
							spec.Doc = d.Doc
						}
						specs, s.structs[spec.Name.Name] = append(specs, spec), body
					}
				}
			}
		}
	}
	for _, spec := range specs {
		name, event := names[spec.Name.Name]
		if !event {
			name = snake(spec.Name.Name)
		}
		o := object{name: name, goName: spec.Name.Name, goFields: map[string]string{}, doc: oneLine(spec.Doc.Text())}
		s.fieldsOf(t, &o, s.structs[spec.Name.Name])
		switch {
		case event:
			s.events = append(s.events, o)
		case spec.Name.Name != "Nested":
			s.parts = append(s.parts, o)
		}
	}
	if len(s.events) != len(names) || len(names) < 70 {
		t.Fatalf("%d types of events, and %d of them have a struct", len(names), len(s.events))
	}
	s.translate(names)
	for path := range s.words {
		name, member, _ := strings.Cut(path, ".")
		if name != "failure" && !s.has(name, member) {
			t.Errorf("there is no field %s, which needs fixed words", path)
		}
	}
	return s
}

func (s *source) has(name, member string) bool {
	for _, o := range append(append([]object{}, s.events...), s.parts...) {
		for _, f := range o.fields {
			if o.name == name && f.name == member {
				return true
			}
		}
	}
	return false
}

// translate replaces Go's names in comments by those of the wire.
func (s *source) translate(names map[string]string) {
	for _, list := range [][]object{s.events, s.parts} {
		for i, o := range list {
			replace := func(doc string) string {
				return identifier.ReplaceAllStringFunc(doc, func(name string) string {
					switch {
					case inWords[name] != "":
						return inWords[name]
					case name == o.goName:
						return o.name
					case o.goFields[name] != "":
						return o.goFields[name]
					case names[name] != "" && strings.ToLower(name[1:]) != name[1:]: // not a word
						return names[name]
					}
					return name
				})
			}
			list[i].doc = replace(o.doc)
			for j, f := range o.fields {
				o.fields[j].doc = replace(f.doc)
			}
		}
	}
}

var inWords = map[string]string{"nil": "null", "MaxLine": "128 MiB", "Questions": "questions"}

var identifier = regexp.MustCompile(`\b[A-Za-z]+\b`)

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// fieldsOf adds the fields of a struct; those of embedded structs are its own.
func (s *source) fieldsOf(t *testing.T, o *object, body *ast.StructType) {
	for _, f := range body.Fields.List {
		if len(f.Names) == 0 {
			s.fieldsOf(t, o, s.structs[f.Type.(*ast.Ident).Name])
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		k, path := s.kindOf(t, f.Type), o.name+"."+name
		k.words = s.words[path]
		doc, own := docs[path]
		if !own {
			doc = oneLine(f.Doc.Text() + " " + f.Comment.Text())
		}
		o.goFields[f.Names[0].Name] = name
		o.fields = append(o.fields, field{name: name, doc: doc, optional: strings.Contains(options, "omitempty"), kind: k})
	}
}

func (s *source) kindOf(t *testing.T, expr ast.Expr) kind {
	switch e := expr.(type) {
	case *ast.StarExpr:
		k := s.kindOf(t, e.X)
		k.null = true
		return k
	case *ast.ArrayType:
		items := s.kindOf(t, e.Elt)
		return kind{base: "array", items: &items}
	case *ast.SelectorExpr: // json.RawMessage
		return any_
	case *ast.Ident:
		switch e.Name {
		case "string", "Code":
			return text
		case "bool":
			return kind{base: "boolean"}
		case "int", "int64", "uint64":
			return kind{base: "integer"}
		case "float64":
			return kind{base: "number"}
		}
		if s.structs[e.Name] != nil {
			return kind{base: snake(e.Name)}
		}
	}
	t.Fatalf("no JSON schema for the Go type %v", expr)
	return kind{}
}

// snake writes a Go name in snake_case.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
