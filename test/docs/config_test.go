package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestConfigPage compares the keys in docs/config.md, and who may set them, with
// those that the settings read.
func TestConfigPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "config.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|.*\\| (project|you) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2] == "project"
	}
	keys := settingKeys(t)
	for name, project := range keys {
		if who, ok := documented[name]; !ok {
			t.Errorf("docs/config.md lacks the key %s", name)
		} else if who != project {
			t.Errorf("docs/config.md is wrong about who may set %s", name)
		}
	}
	for name := range documented {
		if _, ok := keys[name]; !ok {
			t.Errorf("docs/config.md has %s, which is no key", name)
		}
	}
}

// settingKeys are the rows of the table of keys, and whether a project may set them.
func settingKeys(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "cmd", "amux", "internal", "settings", "settings.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		value, ok := d.Specs[0].(*ast.ValueSpec)
		if !ok || value.Names[0].Name != "keys" {
			continue
		}
		for _, row := range value.Values[0].(*ast.CompositeLit).Elts {
			cells := row.(*ast.CompositeLit).Elts
			name, err := strconv.Unquote(cells[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			keys[name] = cells[1].(*ast.Ident).Name == "true"
		}
	}
	if len(keys) < 10 {
		t.Fatalf("only %d keys were found", len(keys))
	}
	return keys
}
