// Package deps holds the packages of amux to the direction in which they may
// import each other.
package deps

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/amux-dev/amux"

type pkg struct {
	ImportPath string
	Name       string
	GoFiles    []string
	Doc        string
	Imports    []string
	Deps       []string
	Standard   bool
}

// list asks go list about packages as they are built for this system.
func list(t *testing.T, args ...string) map[string]pkg { return listFor(t, runtime.GOOS, args...) }

func listFor(t *testing.T, system string, args ...string) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,GoFiles,Doc,Imports,Deps,Standard"}, args...)...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// systems are those that amux is built for. Each has files of its own.
var systems = []string{"linux", "darwin", "windows"}

// leaves have one idea each and know nothing of each other.
var leaves = []string{
	"internal/adapter", "internal/changes", "internal/command", "internal/egress", "internal/eventlog", "internal/git", "internal/journal", "internal/lines", "internal/process", "internal/place", "internal/program", "internal/pty",
	"internal/registry", "internal/rule", "internal/schema", "internal/serve", "internal/shim", "internal/store", "internal/vt",
}

// Imports flow one way: plugins → sdk → pluginapi ← host ← cmd/amux. Below all of them
// is the floor, internal/sys, which everybody may import and which imports nothing else
// of amux.
func TestDirection(t *testing.T) {
	type rule struct {
		from, why string
		may       []string // what else of amux it may import, besides itself and the floor
	}
	rules := []rule{
		{"internal/sys", "the floor knows nothing of amux", nil},
		{"internal/eventdiff", "it compares lines of JSON", nil},
		{"pluginapi", "the contract knows neither side", nil},
		{"sdk", "a plugin links neither host nor command line", []string{"pluginapi"}},
		{"plugins", "our adapters use what third parties have", []string{"sdk", "pluginapi"}},
		{"docs/example-plugin", "it shows what third parties have", []string{"sdk", "pluginapi"}},
		{"docs/example-conversation", "it shows what third parties have", []string{"sdk", "pluginapi"}},
		{"docs/examples", "they show what third parties have", []string{"host", "pluginapi"}},
		{"host", "the library knows no agent and no command line", append([]string{"pluginapi"}, leaves...)},
		{"cmd/amux", "adapters are other processes", append([]string{"host", "pluginapi", "internal/eventdiff"}, leaves...)},
		{"cmd/amux-shim", "the shim knows the leaves", append([]string{"pluginapi"}, leaves...)},
		{"cmd/amux-bridge", "the bridge knows the leaves", append([]string{"pluginapi"}, leaves...)},
		{"cmd/amux-far", "it knows the leaves", append([]string{"pluginapi"}, leaves...)},
		{"cmd/amux-relay", "it knows the leaves", append([]string{"pluginapi"}, leaves...)},
		{"cmd/amux-place-docker", "it knows its callers, and nothing of runs", []string{"internal/place/helper", "internal/place/broker"}},
		{"cmd/amux-place-kubernetes", "it knows its callers, and nothing of runs", []string{"internal/place/helper", "internal/place/broker"}},
		{"cmd/amux-sandbox", "it knows the way out, and nothing of runs", []string{"internal/egress"}},
		{"cmd/amux-schema", "it validates, and knows nothing of runs", nil},
	}
	for _, leaf := range leaves {
		may := []string{"pluginapi"}
		switch leaf {
		case "internal/shim":
			may = append(may, "internal/journal") // its records are what the shim writes
		case "internal/command":
			may = []string{"internal/process"} // of a command that has ended nothing is left
		case "internal/program":
			may = append(may, "internal/command") // it asks programs
		case "internal/git":
			may = []string{"internal/command", "internal/process"} // it runs git
		case "internal/changes":
			may = []string{"internal/command", "internal/git"} // they are git trees
		}
		rules = append(rules, rule{leaf, "only host puts the leaves together", may})
	}
	const floor = module + "/internal/sys"
	for _, system := range systems {
		packages := listFor(t, system, "./...")
		ruled := map[string]bool{}
		for _, rule := range rules {
			from := module + "/" + rule.from
			allowed := []string{from}
			if from != floor {
				allowed = append(allowed, floor)
			}
			for _, may := range rule.may {
				allowed = append(allowed, module+"/"+may)
			}
			seen := false
			for path, p := range packages {
				if !within(path, from) {
					continue
				}
				seen, ruled[path] = true, true
				for _, imported := range p.Imports {
					if within(imported, module) && !slices.ContainsFunc(allowed, func(prefix string) bool { return within(imported, prefix) }) {
						t.Errorf("%s: %s imports %s: %s", system, path, imported, rule.why)
					}
				}
			}
			if !seen {
				t.Errorf("%s: there is no package %s", system, rule.from)
			}
		}
		for path := range packages {
			if !ruled[path] && !within(path, module+"/test") && !within(path, module+"/internal/test") {
				t.Errorf("%s: no rule says what %s may import", system, path)
			}
		}
	}
}

// The nouns of the command line do not know each other: a command is read with its own
// package and what all share. Only sessions runs agents, as amux run does, and so do the
// ways in for other programs, each with the options of its own command.
func TestNouns(t *testing.T) {
	const nouns = module + "/cmd/amux/internal/cli"
	found := 0
	for _, system := range systems {
		for path, p := range listFor(t, system, "./cmd/amux/...") {
			if p.Name == "main" || path == nouns {
				continue
			}
			faces := within(path, module+"/cmd/amux/amux-api/internal")
			if within(path, nouns) {
				found++
			}
			for _, imported := range p.Imports {
				if within(imported, nouns) && !faces && (path != nouns+"/sessions" || imported != nouns+"/run") {
					t.Errorf("%s: %s imports %s: nouns do not know each other", system, path, imported)
				}
			}
		}
	}
	if found < 9*len(systems) {
		t.Errorf("only %d packages of nouns were seen", found)
	}
}

// What another module may import stands in docs/architecture.md, for whom it is meant;
// all else is internal or a program.
func TestImportable(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## What other modules may import\n")
	if !found {
		t.Fatal("docs/architecture.md does not say what other modules may import")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "|") {
			for _, name := range regexp.MustCompile("`([a-z][a-z0-9/]*)`").FindAllStringSubmatch(line, -1) {
				named[name[1]] = true
			}
		}
	}
	for path, p := range list(t, "./...") {
		name := strings.TrimPrefix(path, module+"/")
		if p.Name == "main" || strings.Contains("/"+name+"/", "/internal/") || len(p.GoFiles) == 0 {
			continue
		}
		if !named[name] {
			t.Errorf("%s can be imported by others, and the page does not say for whom: move it below internal, or name it", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("the page names %s, which nobody can import", name)
	}
}

// What authors link stays small, and the shim smaller.
func TestLinked(t *testing.T) {
	outside := func(path string) []string {
		var found []string
		for dep, p := range list(t, "-deps", path) {
			if !p.Standard && !within(dep, module) {
				found = append(found, dep)
			}
		}
		slices.Sort(found)
		return found
	}
	allowed := []string{
		"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "github.com/hashicorp/yamux",
		"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto", "github.com/golang/protobuf",
		"github.com/valyala/fastjson", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
		"github.com/fatih/color", "github.com/mattn/go-colorable", "github.com/mattn/go-isatty", "github.com/oklog/run",
	}
	for _, root := range []string{"./sdk", "./sdk/jsonl", "./sdk/jsonrpc", "./pluginapi"} {
		for _, dep := range outside(root) {
			if !slices.ContainsFunc(allowed, func(prefix string) bool { return within(dep, prefix) }) {
				t.Errorf("%s links %s", root, dep)
			}
		}
	}
	for _, system := range systems {
		var own []string
		for dep := range listFor(t, system, "-deps", "./sdk") {
			if within(dep, module) {
				own = append(own, strings.TrimPrefix(dep, module+"/"))
			}
		}
		if slices.Sort(own); len(own) > 6 {
			t.Errorf("%s: ./sdk links %d packages of amux, want 6 at most: %s", system, len(own), strings.Join(own, ", "))
		}
	}
	if all := list(t, "-deps", "./pluginapi/code"); len(all) != 1 {
		t.Errorf("pluginapi/code links %d packages: it is for programs that link nothing else", len(all))
	}
	for _, dep := range outside("./cmd/amux-shim") {
		if !within(dep, "golang.org/x/sys") && !slices.Contains([]string{"golang.org/x/text/width", "golang.org/x/text/transform", "github.com/creack/pty"}, dep) {
			t.Errorf("amux-shim links %s: there is one shim for each run", dep)
		}
	}
	for _, dep := range outside("./cmd/amux") {
		if strings.Contains(dep, "jsonschema") {
			t.Errorf("amux links %s, which takes 3 ms at every start; amux-schema has it", dep)
		}
	}
	for _, program := range []string{"./cmd/amux", "./cmd/amux-shim", "./cmd/amux-bridge", "./cmd/amux-sandbox", "./plugins/..."} {
		for _, dep := range outside(program) {
			if within(dep, "go.opentelemetry.io") || within(dep, "github.com/modelcontextprotocol") || within(dep, "github.com/danielgtaylor") || within(dep, "github.com/coder") {
				t.Errorf("%s links %s; amux-api has it", program, dep)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for path, p := range list(t, "./...") {
		if p.Doc == "" && len(p.GoFiles) > 0 && !strings.HasPrefix(path, module+"/test/") && !strings.HasSuffix(path, "/amuxplugin1") {
			t.Errorf("%s has no package comment", path)
		}
	}
}
