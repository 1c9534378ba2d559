package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"
)

// step is a row of a walk: what happens, the file, and the function in it.
var step = regexp.MustCompile("\\]\\((\\.\\./[^)]+\\.go)\\) +\\| +`([\\w.]+)` +\\|")

// TestWalk finds the file and the function of each step of docs/architecture.md.
func TestWalk(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	steps := step.FindAllStringSubmatch(readPage(t, filepath.Join(docs, "architecture.md")), -1)
	if len(steps) < 20 {
		t.Errorf("there are only %d steps", len(steps))
	}
	for _, s := range steps {
		names := functions(t, filepath.Join(docs, filepath.FromSlash(s[1])))
		if !names[s[2]] {
			t.Errorf("%s has no function %s", s[1], s[2])
		}
	}
}

// functions are those of a file: Func, and Type.Method.
func functions(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if ident, ok := receiver.(*ast.Ident); ok {
				name = ident.Name + "." + name
			}
		}
		names[name] = true
	}
	return names
}
