package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi/code"
)

// The tables of docs/events.md, between these marks, are made from the Go types.
const (
	tablesBegin = "<!-- tables: make docs -->\n"
	tablesEnd   = "<!-- end of tables -->\n"
)

// TestEventsPage compares docs/events.md with the types of events and the table of
// codes; make docs writes it.
func TestEventsPage(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "events.md")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(have), tablesBegin)
	_, tail, ok2 := strings.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for its tables", path)
	}
	page := head + tablesBegin + eventTables(t) + codeTable() + tablesEnd + tail
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if page != string(have) {
		t.Error("docs/events.md is not what the types say: make docs")
	}
}

// eventTables documents every type of event, in the order and the groups of
// pluginapi/event.go.
func eventTables(t *testing.T) string {
	t.Helper()
	files := token.NewFileSet()
	parse := func(path ...string) *ast.File {
		file, err := parser.ParseFile(files, filepath.Join(append([]string{"..", "..", "pluginapi"}, path...)...), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := parse("event.go")
	names := eventNames(file, parse("code", "event.go"))
	structs := map[string]*ast.StructType{}
	for _, decl := range file.Decls {
		for _, spec := range typeSpecs(decl) {
			if s, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = s
			}
		}
	}
	var page strings.Builder
	documented := 0
	for _, decl := range file.Decls {
		group := true
		for _, spec := range typeSpecs(decl) {
			name, ok := names[spec.Name.Name]
			if !ok {
				continue
			}
			if group {
				title, text, _ := strings.Cut(strings.Join(strings.Fields(decl.(*ast.GenDecl).Doc.Text()), " "), ". ")
				fmt.Fprintf(&page, "\n### %s\n", strings.TrimSuffix(title, "."))
				if text != "" {
					fmt.Fprintf(&page, "\n%s\n", text)
				}
				group = false
			}
			fmt.Fprintf(&page, "\n**`%s`**", name)
			if text := about(spec); text != "" {
				fmt.Fprintf(&page, " %s", text)
			}
			page.WriteString("\n\n")
			writeFields(&page, structs[spec.Name.Name], structs)
			documented++
		}
	}
	if documented != len(names) {
		t.Errorf("%d of %d types of events are documented", documented, len(names))
	}
	return page.String()
}

// eventNames maps Go types to types of events, as the EventType methods do.
func eventNames(file, words *ast.File) map[string]string {
	constants := map[string]string{}
	ast.Inspect(words, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			constants[spec.Names[0].Name], _ = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	names := map[string]string{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "EventType" || f.Recv == nil {
			continue
		}
		constant := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.SelectorExpr)
		names[f.Recv.List[0].Type.(*ast.Ident).Name] = constants[constant.Sel.Name]
	}
	return names
}

func typeSpecs(decl ast.Decl) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
		for _, spec := range d.Specs {
			specs = append(specs, spec.(*ast.TypeSpec))
		}
	}
	return specs
}

// about is the comment of a type without its Go name, which the event's stands for.
func about(spec *ast.TypeSpec) string {
	text := strings.Join(strings.Fields(spec.Doc.Text()), " ")
	if rest, ok := strings.CutPrefix(text, spec.Name.Name); ok {
		return strings.TrimSpace(strings.TrimPrefix(rest, ":"))
	}
	return text
}

// writeFields writes a line for each field; those of embedded structs are its own.
func writeFields(page *strings.Builder, s *ast.StructType, structs map[string]*ast.StructType) {
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 {
			if embedded, ok := field.Type.(*ast.Ident); ok {
				writeFields(page, structs[embedded.Name], structs)
			}
			continue
		}
		tag, _ := strconv.Unquote(field.Tag.Value)
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		fmt.Fprintf(page, "* `%s`: %s", name, jsonType(field.Type, structs))
		if strings.Contains(options, "omitempty") {
			page.WriteString(", may be absent")
		}
		if text := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " "); text != "" {
			fmt.Fprintf(page, " (%s)", text)
		}
		page.WriteString("\n")
	}
}

// jsonType says what a Go type is in JSON.
func jsonType(expr ast.Expr, structs map[string]*ast.StructType) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return jsonType(e.X, structs) + " or null"
	case *ast.ArrayType:
		return "array of " + jsonType(e.Elt, structs)
	case *ast.MapType:
		return "object of " + jsonType(e.Value, structs)
	case *ast.SelectorExpr:
		return "any JSON" // json.RawMessage
	case *ast.Ident:
		switch e.Name {
		case "string", "Code":
			return "string"
		case "bool":
			return "boolean"
		case "int", "int64", "float64":
			return "number"
		}
		if inner := structs[e.Name]; inner != nil {
			var fields []string
			for _, field := range inner.Fields.List {
				tag, _ := strconv.Unquote(field.Tag.Value)
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				fields = append(fields, "`"+name+"`: "+jsonType(field.Type, structs))
			}
			return "object {" + strings.Join(fields, ", ") + "}"
		}
		return "string"
	}
	return "any JSON"
}

// codeTable is code.All.
func codeTable() string {
	var page strings.Builder
	page.WriteString("\n## Error codes\n\n| code | meaning | exit code | what to do |\n|---|---|---|---|\n")
	for _, info := range code.All {
		fmt.Fprintf(&page, "| `%s` | %s | %d | %s |\n", info.Code, info.Meaning, info.Exit, info.Hint)
	}
	return page.String()
}
