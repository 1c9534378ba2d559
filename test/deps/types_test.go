package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mostMethods = 30
	mostFields  = 25
)

// size is how large a type is.
type size struct {
	methods map[string]bool // of all systems
	fields  int
	embeds  []string // interfaces of the same package
}

// No type has more than 30 methods or 25 fields, so that each has one job. Files of
// every system count, generated ones and tests do not.
func TestTypesAreSmall(t *testing.T) {
	types := sizes(t, filepath.Join("..", ".."))
	if len(types) < 500 {
		t.Fatalf("only %d types were found", len(types))
	}
	for name, s := range types {
		methods := map[string]bool{}
		addMethods(types, name, methods)
		if len(methods) > mostMethods || s.fields > mostFields {
			t.Errorf("%s has %d methods and %d fields: split it", name, len(methods), s.fields)
		}
	}
}

// addMethods adds the methods of a type, and of the interfaces in it.
func addMethods(types map[string]*size, name string, methods map[string]bool) {
	s := types[name]
	if s == nil {
		return
	}
	for method := range s.methods {
		methods[method] = true
	}
	for _, embedded := range s.embeds {
		addMethods(types, embedded, methods)
	}
}

// sizes parses all files below a folder. Types are named as folder.Name.
func sizes(t *testing.T, root string) map[string]*size {
	t.Helper()
	types := map[string]*size{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() == "bin" || strings.HasPrefix(e.Name(), ".") && path != root):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		addFile(types, filepath.ToSlash(dir), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func addFile(types map[string]*size, dir string, file *ast.File) {
	at := func(name string) *size {
		name = dir + "." + name
		if types[name] == nil {
			types[name] = &size{methods: map[string]bool{}}
		}
		return types[name]
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				at(receiver(d.Recv.List[0].Type)).methods[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				declared, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				s := at(declared.Name.Name)
				switch typ := declared.Type.(type) {
				case *ast.StructType:
					s.fields = max(s.fields, typ.Fields.NumFields()) // systems may differ
				case *ast.InterfaceType:
					for _, member := range typ.Methods.List {
						for _, name := range member.Names {
							s.methods[name.Name] = true
						}
						if embedded, ok := member.Type.(*ast.Ident); ok && len(member.Names) == 0 {
							s.embeds = append(s.embeds, dir+"."+embedded.Name)
						}
					}
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(typ ast.Expr) string {
	for {
		switch e := typ.(type) {
		case *ast.StarExpr:
			typ = e.X
		case *ast.IndexExpr:
			typ = e.X
		case *ast.IndexListExpr:
			typ = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
