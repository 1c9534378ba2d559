// Package toolchain brings the real agents that test/real runs: the exact
// versions of test/real/agents/package-lock.json, installed by npm into
// .cache/agents of the checkout, and those of the folders below it (sets.go) into
// .cache/agents.d. Install is idempotent, returns at once if the
// agents are there, and may be called by several processes at the same time. No
// install script of a package is run. The package also makes the clean
// environment that an agent is started in.
package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// ErrOffline says that the agents are absent and AMUX_TEST_OFFLINE=1 forbids to
// fetch them.
var ErrOffline = errors.New("the agents are not installed, and AMUX_TEST_OFFLINE=1")

// fakeKey is accepted by the fake model only.
const fakeKey = "sk-ant-test-fake-0000"

// program is where an npm package keeps an agent's real program; the launcher
// scripts of npm are not used.
type program struct {
	pkg   string // whose version is pinned
	glob  string // below node_modules
	calls string // what --version prints before the version
}

var programs = map[string]program{
	"claude": {pkg: "@anthropic-ai/claude-code", glob: "@anthropic-ai/claude-code-*/claude"},
	"codex":  {pkg: "@openai/codex", glob: "@openai/codex-*/vendor/*/bin/codex", calls: "codex-cli "},
}

// Toolchain is an installed set of agents.
type Toolchain struct {
	// Root is the checkout.
	Root string
	// Bin has each agent's program under its own name, for PATH.
	Bin string
	// Versions by program name, as pinned.
	Versions map[string]string
	// Missing says of programs that cannot be had on this machine why.
	Missing map[string]string
	// Fetched is how long npm took; 0 if all was there.
	Fetched time.Duration
}

// Root finds the checkout above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "real", "agents", "package-lock.json")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of amux")
		}
		dir = parent
	}
}

// Install makes sure that the agents are there.
func Install(ctx context.Context) (*Toolchain, error) {
	tc, err := install(ctx)
	if err != nil {
		return nil, err
	}
	if err := tc.installSets(ctx); err != nil {
		return nil, err
	}
	return tc, nil
}

func install(ctx context.Context) (*Toolchain, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, ".cache", "agents")
	tc := &Toolchain{Root: root, Bin: filepath.Join(dir, "bin"), Versions: map[string]string{}, Missing: map[string]string{}}
	manifest, err := os.ReadFile(filepath.Join(root, "test", "real", "agents", "package.json"))
	if err != nil {
		return nil, err
	}
	lockfile, err := os.ReadFile(filepath.Join(root, "test", "real", "agents", "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var pinned struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(manifest, &pinned); err != nil {
		return nil, fmt.Errorf("read test/real/agents/package.json: %w", err)
	}
	for name, p := range programs {
		tc.Versions[name] = pinned.Dependencies[p.pkg]
	}
	sum := sha256.Sum256(append(manifest, lockfile...))
	stamp := []byte(hex.EncodeToString(sum[:]) + "\n")
	if ready(dir, stamp) {
		return tc, nil
	}
	if os.Getenv("AMUX_TEST_OFFLINE") == "1" {
		return nil, ErrOffline
	}

	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(dir + ".lock")
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return nil, fmt.Errorf("wait for another install of the agents: %w", err)
	}
	defer lock.Unlock()
	if ready(dir, stamp) {
		return tc, nil
	}
	started := time.Now()
	fresh := dir + ".new"
	if err := fetch(ctx, fresh, manifest, lockfile); err != nil {
		return nil, err
	}
	if err := tc.link(ctx, fresh); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(fresh, "stamp"), stamp, 0o644); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return nil, err
	}
	tc.Fetched = time.Since(started)
	return tc, nil
}

func ready(dir string, stamp []byte) bool {
	have, err := os.ReadFile(filepath.Join(dir, "stamp"))
	return err == nil && bytes.Equal(have, stamp)
}

func fetch(ctx context.Context, dir string, manifest, lockfile []byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"package.json": manifest, "package-lock.json": lockfile} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = dir
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci for the agents (AMUX_TEST_OFFLINE=1 skips them): %w\n%s", err, bytes.TrimSpace(output))
	}
	return nil
}

// link fills bin and checks that each program is of the pinned version.
func (tc *Toolchain) link(ctx context.Context, dir string) error {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "amux-toolchain-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	for name, p := range programs {
		found, err := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(p.glob)))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("npm installed %d programs %s for %s, want 1", len(found), p.glob, name)
		}
		target, err := filepath.Rel(bin, found[0])
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			return err
		}
		version := exec.CommandContext(ctx, found[0], "--version")
		version.Env = append(Env(home), "PATH="+os.Getenv("PATH"))
		output, err := version.Output()
		if err != nil {
			return fmt.Errorf("%s --version: %w", name, err)
		}
		if !strings.HasPrefix(string(output), p.calls+tc.Versions[name]) {
			return fmt.Errorf("%s says version %q, pinned is %s", name, bytes.TrimSpace(output), tc.Versions[name])
		}
	}
	return nil
}

// Program is the path of an agent's real program.
func (tc *Toolchain) Program(name string) (string, error) {
	for _, s := range sets {
		if s.name == name {
			return filepath.EvalSymlinks(filepath.Join(tc.setDir(name), "bin", name))
		}
	}
	return filepath.EvalSymlinks(filepath.Join(tc.Bin, name))
}

// Path is a PATH with the agents first and the system's programs after them.
func (tc *Toolchain) Path() string {
	dirs := append([]string{tc.Bin}, tc.setBins()...)
	return strings.Join(append(dirs, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"), string(os.PathListSeparator))
}

// Env is what every agent gets, and nothing else of the caller's environment:
// a home of its own, which it makes with a tmp inside, and switches against
// traffic that no test asks for.
func Env(home string) []string {
	os.MkdirAll(filepath.Join(home, "tmp"), 0o700)
	return []string{
		"HOME=" + home,
		"USER=amux-test",
		"LANG=C.UTF-8",
		"TERM=dumb",
		"TMPDIR=" + filepath.Join(home, "tmp"),
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
}

// Anthropic points an agent at a fake model of the Anthropic API.
func Anthropic(_, baseURL string) []string {
	return []string{
		"ANTHROPIC_API_KEY=" + fakeKey,
		"ANTHROPIC_BASE_URL=" + baseURL,
		"CLAUDE_CODE_MAX_RETRIES=1",
	}
}

// openAIConfig is a provider of Codex's that is not its own: of the environment it
// takes the key alone. A request that the provider could not take is told and
// tried once more.
const openAIConfig = `model = "gpt-5.5"
model_provider = "fake"
suppress_unstable_features_warning = true

[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "AMUX_TEST_MODEL_KEY"
request_max_retries = 0
stream_max_retries = 1

[features]
default_mode_request_user_input = true
`

// OpenAI points Codex at a fake model of the Responses API, by the configuration
// in its home.
func OpenAI(home, baseURL string) []string {
	dir := filepath.Join(home, ".codex")
	os.MkdirAll(dir, 0o700)
	os.WriteFile(filepath.Join(dir, "config.toml"), fmt.Appendf(nil, openAIConfig, baseURL), 0o600)
	return []string{"AMUX_TEST_MODEL_KEY=" + fakeKey}
}
