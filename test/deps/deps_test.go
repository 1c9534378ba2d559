// Package deps holds the packages of amux to the direction in which they may
// import each other.
package deps

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/amux-dev/amux"

type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
	Deps       []string
	Standard   bool
}

// list asks go list about packages as they are built for this system.
func list(t *testing.T, args ...string) map[string]pkg { return listFor(t, runtime.GOOS, args...) }

func listFor(t *testing.T, system string, args ...string) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Doc,Imports,Deps,Standard"}, args...)...)
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

// Imports flow one way: plugins → sdk → pluginapi ← host ← cmd/amux. Below all of them
// is the floor, internal/sys, which everybody may import and which imports nothing else
// of amux.
func TestDirection(t *testing.T) {
	rules := []struct {
		from, why string
		may       []string // what else of amux it may import, besides itself and the floor
	}{
		{"internal/sys", "the floor knows nothing of amux", nil},
		{"internal/eventdiff", "it compares lines of JSON", nil},
		{"pluginapi", "the contract knows neither side", nil},
		{"sdk", "a plugin links neither host nor command line", []string{"pluginapi"}},
		{"plugins", "our adapters use what third parties have", []string{"sdk", "pluginapi"}},
		{"docs/example-plugin", "it shows what third parties have", []string{"sdk", "pluginapi"}},
		{"docs/example-conversation", "it shows what third parties have", []string{"sdk", "pluginapi"}},
		{"host", "the library knows no agent and no command line", []string{"pluginapi"}},
		{"cmd/amux", "adapters are other processes", []string{"host", "pluginapi", "internal/eventdiff"}},
		{"cmd/amux-shim", "the shim knows the host's packages", []string{"host", "pluginapi"}},
		{"cmd/amux-bridge", "the bridge knows the host's packages", []string{"host", "pluginapi"}},
		{"cmd/amux-schema", "it validates, and knows nothing of runs", nil},
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
			if !ruled[path] && !within(path, module+"/test") {
				t.Errorf("%s: no rule says what %s may import", system, path)
			}
		}
	}
}

// The nouns of the command line do not know each other: a command is read with its own
// package and what all share. Only sessions runs agents, as amux run does.
func TestNouns(t *testing.T) {
	const nouns = module + "/cmd/amux/internal/cli"
	found := 0
	for _, system := range systems {
		for path, p := range listFor(t, system, "./cmd/amux/...") {
			if path == module+"/cmd/amux" || path == nouns {
				continue
			}
			if within(path, nouns) {
				found++
			}
			for _, imported := range p.Imports {
				if within(imported, nouns) && (path != nouns+"/sessions" || imported != nouns+"/run") {
					t.Errorf("%s: %s imports %s: nouns do not know each other", system, path, imported)
				}
			}
		}
	}
	if found < 9*len(systems) {
		t.Errorf("only %d packages of nouns were seen", found)
	}
}

// The packages below host do not know each other, but for the journal's records: host
// and those in host/internal put them together.
func TestLeaves(t *testing.T) {
	for _, system := range systems {
		for path, p := range listFor(t, system, "./host/...") {
			if path == module+"/host" {
				continue
			}
			room := within(path, module+"/host/internal")
			for _, imported := range p.Imports {
				if imported == module+"/host" || within(imported, module+"/host") && imported != module+"/host/journal" && !room {
					t.Errorf("%s: %s imports %s: only host puts them together", system, path, imported)
				}
			}
		}
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
		if slices.Sort(own); len(own) > 5 {
			t.Errorf("%s: ./sdk links %d packages of amux, want 5 at most: %s", system, len(own), strings.Join(own, ", "))
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
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for path, p := range list(t, "./...") {
		if p.Doc == "" && !strings.HasPrefix(path, module+"/test/") && !strings.HasSuffix(path, "/amuxplugin1") {
			t.Errorf("%s has no package comment", path)
		}
	}
}
