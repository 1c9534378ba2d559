package real

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

// parts are hashes of what the tests of an agent depend on, by name.
type parts map[string]string

// dependencies hashes for each agent its adapter with the packages of amux that it
// links, its pinned version, the fake model, and the tests: those that all agents
// share and those in files of its own name. The host and what is tested of it alone are no
// part of it, nor are the fake agents, which link it. Comments are not hashed.
func dependencies(root string) (map[string]parts, error) {
	packages, err := listPackages(root)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "test", "real", "*_test.go"))
	if err != nil {
		return nil, err
	}
	owned := map[string][]string{} // by agent; "" are shared
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "host_") {
			continue // runs always
		}
		owner := ""
		if i := slices.IndexFunc(agents, func(a agentRow) bool { return a.owns(file) }); i >= 0 {
			owner = agents[i].id
		}
		owned[owner] = append(owned[owner], file)
	}
	harness := packages.linked("internal/test/toolchain", "internal/test/netns")
	shared, err := hashFiles(root, append(packages.files(harness), owned[""]...))
	if err != nil {
		return nil, err
	}
	model, err := hashFiles(root, packages.files(packages.linked("internal/test/fakemodel")))
	if err != nil {
		return nil, err
	}
	all := map[string]parts{}
	for _, a := range agents {
		p := parts{"test/real": shared, "internal/test/fakemodel": model}
		var contract []string
		for _, id := range append([]string{a.id}, a.with...) {
			if p["test/real/"+stem(id)+"*"], err = hashFiles(root, owned[id]); err != nil {
				return nil, err
			}
			for _, pkg := range packages.linked(adapter(root, id)) {
				if !strings.HasPrefix(pkg, "plugins/") {
					contract = append(contract, pkg)
				} else if p[pkg], err = hashFiles(root, packages.files([]string{pkg})); err != nil {
					return nil, err
				}
			}
		}
		slices.Sort(contract)
		if p["sdk"], err = hashFiles(root, packages.files(slices.Compact(contract))); err != nil {
			return nil, err
		}
		if p["test/real/agents"], err = hashPins(root, a.program); err != nil {
			return nil, err
		}
		all[a.id] = p
	}
	return all, nil
}

// stem is how files of an agent's tests begin.
func stem(id string) string {
	return strings.ReplaceAll(strings.TrimPrefix(id, "amux-"), "-", "_")
}

// owns reports whether a file has tests of this agent only, by its name.
func (a agentRow) owns(file string) bool {
	name := strings.TrimSuffix(filepath.Base(file), "_test.go")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_linux"), "_options")
	return name == stem(a.id)
}

// adapter is the folder of an agent's adapter.
func adapter(root, id string) string {
	name := strings.TrimPrefix(id, "amux-")
	if _, err := os.Stat(filepath.Join(root, "plugins", name)); err == nil {
		return "plugins/" + name
	}
	return "plugins/others/internal/" + name
}

// packageSet has amux's own packages by their folder.
type packageSet map[string]struct {
	ImportPath, Dir           string
	GoFiles, EmbedFiles, Deps []string
}

const module = "github.com/amux-dev/amux/"

// listPackages asks go list for the packages that adapters and tests may link.
func listPackages(root string) (packageSet, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,EmbedFiles,Deps", "./...")
	cmd.Dir = root
	// The hashes are the same on every machine.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderrOf(err))
	}
	packages := packageSet{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p = packages[""]
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages[strings.TrimPrefix(p.ImportPath, module)] = p
	}
}

// linked are the folders of these packages and of all that they import of amux.
func (s packageSet) linked(folders ...string) []string {
	var all []string
	for _, folder := range folders {
		all = append(all, folder)
		for _, dep := range s[folder].Deps {
			if own, ok := strings.CutPrefix(dep, module); ok {
				all = append(all, own)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s packageSet) files(folders []string) []string {
	var files []string
	for _, folder := range folders {
		p := s[folder]
		for _, name := range slices.Concat(p.GoFiles, p.EmbedFiles) {
			files = append(files, filepath.Join(p.Dir, name))
		}
	}
	return files
}

// hashFiles hashes names and contents; of Go files all but comments and layout.
func hashFiles(root string, files []string) (string, error) {
	sum := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return "", err
		}
		if path.Ext(name) == ".go" {
			data = code(data)
		}
		fmt.Fprintf(sum, "%s %d\n%s\n", filepath.ToSlash(name), len(data), data)
	}
	return short(sum.Sum(nil)), nil
}

func short(sum []byte) string { return hex.EncodeToString(sum[:8]) }

// code is a Go file without its comments; those that direct the compiler stay.
func code(source []byte) []byte {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, scanner.ScanComments)
	var tokens []byte
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return tokens
		case tok == token.COMMENT && !strings.HasPrefix(text, "//go:"):
			continue
		case tok == token.SEMICOLON:
			text = ";" // also where the line's end stands for it
		}
		tokens = append(append(tokens, cmp.Or(text, tok.String())...), '\n')
	}
}

// hashPins hashes what pins a program: its lines of the lock file that agents share,
// or its own files; and what programs run on.
func hashPins(root, program string) (string, error) {
	dir := filepath.Join(root, "test", "real", "agents")
	sum := sha256.New()
	i := slices.IndexFunc(toolchain.Pins(), func(p toolchain.Pin) bool { return p.Agent == program })
	if i < 0 {
		return "", fmt.Errorf("%s is not pinned", program)
	}
	folders := []string{"bun", "node"}
	if pin := toolchain.Pins()[i]; pin.Dir != "." {
		folders = append(folders, pin.Dir)
	} else {
		var lock struct{ Packages map[string]json.RawMessage }
		data, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(data, &lock); err != nil {
			return "", err
		}
		found := false
		for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
			if strings.HasPrefix(name, "node_modules/"+pin.Package) {
				found = true
				fmt.Fprintf(sum, "%s %s\n", name, lock.Packages[name])
			}
		}
		if !found {
			return "", fmt.Errorf("package-lock.json has no %s", pin.Package)
		}
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %d\n%s\n", filepath.Base(file), len(data), data)
		}
	}
	return short(sum.Sum(nil)), nil
}

// What a comment says changes nothing, what the code says does, and so does a directive.
func TestCodeHash(t *testing.T) {
	const source = "package x\n\n// F adds.\nfunc F(a int) int { return a + 1 }\n"
	for _, c := range []struct {
		name, other string
		same        bool
	}{
		{"comment", strings.Replace(source, "F adds", "F increments", 1), true},
		{"layout", strings.Replace(source, "{ return a + 1 }", "{   return a + /* one */ 1 }", 1), true},
		{"code", strings.Replace(source, "+", "-", 1), false},
		{"name", strings.Replace(source, "F(", "G(", 1), false},
		{"directive", strings.Replace(source, "// F adds.", "//go:noinline", 1), false},
	} {
		if same := string(code([]byte(source))) == string(code([]byte(c.other))); same != c.same {
			t.Errorf("%s: same %v, want %v", c.name, same, c.same)
		}
	}
}

// Each agent has its own adapter, its tests and its pin; what one has changed leaves
// the others alone.
func TestDependencies(t *testing.T) {
	all, err := dependencies(tc.Root)
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string][]string{
		"claude":        {"plugins/claude", "sdk", "internal/test/fakemodel", "test/real", "test/real/agents", "test/real/claude*"},
		"omp":           {"plugins/others/internal/omp", "plugins/others/internal/pirpc", "sdk", "test/real/omp*"},
		"amux-remote":   {"plugins/claude", "plugins/others/internal/remote", "test/real/claude*", "test/real/remote*"},
		"opencode-http": {"plugins/others/internal/opencode", "plugins/others/internal/opencode-http", "test/real/opencode*", "test/real/opencode_http*"},
	} {
		for _, part := range want {
			if all[agent][part] == "" {
				t.Errorf("%s has no part %s: %v", agent, part, all[agent])
			}
		}
	}
	for _, a := range agents {
		if all[a.id]["test/real"] != all["claude"]["test/real"] {
			t.Errorf("%s does not share the harness", a.id)
		}
		if a.id != "amux-remote" && a.id != "claude" && all[a.id]["plugins/claude"] != "" {
			t.Errorf("%s depends on the adapter of claude", a.id)
		}
	}
	empty, _ := hashFiles(tc.Root, nil)
	for agent, p := range all {
		for part, hash := range p {
			if hash == empty {
				t.Errorf("%s: %s has no file", agent, part)
			}
		}
	}
}
