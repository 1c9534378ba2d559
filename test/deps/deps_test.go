// Package deps holds the packages of amux to the direction in which they may
// import each other.
package deps

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
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

func list(t *testing.T, args ...string) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Doc,Imports,Deps,Standard"}, args...)...)
	cmd.Dir = "../.."
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

// Imports flow one way: plugins → sdk → pluginapi ← host ← cmd/amux.
func TestDirection(t *testing.T) {
	rules := []struct {
		from, to, why string
	}{
		{"pluginapi", "sdk", "the contract knows neither side"},
		{"pluginapi", "host", "the contract knows neither side"},
		{"pluginapi", "internal", "authors import it"},
		{"sdk", "host", "a plugin must not link the host"},
		{"sdk", "internal", "authors import it"},
		{"sdk", "plugins", "the sdk knows no adapter"},
		{"plugins", "host", "an adapter is a codec"},
		{"plugins", "internal", "our adapters use what third parties have"},
		{"host", "sdk", "the host speaks the protocol, not an implementation"},
		{"host", "plugins", "the host knows no agent"},
		{"host", "internal", "the library knows no command line"},
		{"host", "cmd", "the library knows no command line"},
		{"internal", "plugins", "adapters are other processes"},
		{"internal", "sdk", "adapters are other processes"},
		{"cmd", "plugins", "adapters are other processes"},
	}
	packages := list(t, "./...")
	// They know nothing of amux: one is used at both ends of the line from agent to
	// program, one wherever a plugin is started, one wherever a file from outside is
	// read, one wherever its text is shown, one by the files of a record.
	shared := []string{
		module + "/internal/rawio", module + "/internal/sandbox", module + "/internal/foreign",
		module + "/internal/printable", module + "/internal/aside",
	}
	for _, rule := range rules {
		from, to := module+"/"+rule.from, module+"/"+rule.to
		seen := false
		for path, p := range packages {
			if !within(path, from) {
				continue
			}
			seen = true
			for _, imported := range p.Imports {
				if within(imported, to) && !slices.Contains(shared, imported) {
					t.Errorf("%s imports %s: %s", path, imported, rule.why)
				}
			}
		}
		if !seen {
			t.Errorf("rule for %s: there is no such package", rule.from)
		}
	}
}

// The packages below host do not know each other, but for the journal's records.
func TestLeaves(t *testing.T) {
	for path, p := range list(t, "./host/...") {
		if path == module+"/host" {
			continue
		}
		for _, imported := range p.Imports {
			if within(imported, module+"/host") && imported != module+"/host/journal" {
				t.Errorf("%s imports %s: only host puts them together", path, imported)
			}
		}
	}
}

// What authors link stays small, and the keeper smaller.
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
	for _, dep := range outside("./cmd/amux-shim") {
		if !within(dep, "golang.org/x/sys") && !slices.Contains([]string{"golang.org/x/text/width", "golang.org/x/text/transform", "github.com/creack/pty"}, dep) {
			t.Errorf("amux-shim links %s: there is one shim for each run", dep)
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
