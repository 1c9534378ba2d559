package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/netns"
)

var update = flag.Bool("update", false, "write result.txt")

// small are the agents of an ordinary run.
var small = []string{"auggie", "pi-acp", "qwen-code"}

// runTime bounds one agent, from its start to its answer.
const runTime = time.Minute

// place is where amux was built, and where the agents are added.
type place struct{ root, amux, config string }

func here() (place, error) {
	root, err := filepath.Abs("../..")
	return place{root, filepath.Join(root, "bin", "amux"), filepath.Join(root, ".cache", "registry")}, err
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/registry:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func testMain(m *testing.M) (int, error) {
	p, err := here()
	if err != nil {
		return 1, err
	}
	if netns.Inside() {
		if err := netns.Up(); err != nil {
			return 1, err
		}
		return m.Run(), nil
	}
	if _, err := os.Stat(p.amux); err != nil {
		fmt.Println("amux is not built, so no agent of the registry is added: make build")
		return 0, nil
	}
	if testing.Short() {
		fmt.Println("-short leaves the agents of the registry out")
		return 0, nil
	}
	if os.Getenv("AMUX_TEST_OFFLINE") == "1" {
		fmt.Println("AMUX_TEST_OFFLINE=1 leaves the agents of the registry out")
		return 0, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		fmt.Println("npm is not installed, so no agent of the registry is added: install Node.js")
		return 0, nil
	}
	if err := p.add(); err != nil {
		return 1, err
	}
	return netns.Rerun()
}

// agents are those of the registry that this run is about.
func agents() ([]string, error) {
	if os.Getenv("AMUX_TEST_REGISTRY") != "1" {
		return small, nil
	}
	data, err := os.ReadFile("testdata/registry.json")
	if err != nil {
		return nil, err
	}
	var document struct {
		Agents []struct{ ID string }
	}
	var ids []string
	err = json.Unmarshal(data, &document)
	for _, a := range document.Agents {
		ids = append(ids, a.ID)
	}
	return ids, err
}

// name is that of an agent in amux, which has some of the same name itself.
func name(id string) string { return id + "-r" }

// add adds the agents, as far as they are not there in the version of the registry.
func (p place) add() error {
	ids, err := agents()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.config, 0o700); err != nil {
		return err
	}
	registry, err := filepath.Abs("testdata/registry.json")
	if err != nil {
		return err
	}
	for _, id := range ids {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, p.amux, "agents", "add", "acp:"+id, "--as", name(id), "--registry", registry)
		cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+p.config)
		out, err := cmd.CombinedOutput()
		if err == nil && bytes.Contains(out, []byte("the registry has version")) {
			cmd := exec.CommandContext(ctx, p.amux, "agents", "update", name(id))
			cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+p.config)
			out, err = cmd.CombinedOutput()
		}
		cancel()
		if err != nil {
			return fmt.Errorf("amux agents add acp:%s (AMUX_TEST_OFFLINE=1 leaves it out): %w\n%s", id, err, out)
		}
	}
	return nil
}

// answer is what an agent says of itself in the handshake.
var answer = regexp.MustCompile(`"agentInfo":\{[^{}]*\}`)

// Each agent answers the handshake of the protocol through amux.
func TestHandshake(t *testing.T) {
	p, err := here()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := agents()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var rows []string
	t.Run("agents", func(t *testing.T) {
		for _, id := range ids {
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				row := handshake(t, p, id)
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, row)
			})
		}
	})
	if *update && !t.Failed() {
		slices.Sort(rows)
		text := "# Agents of the ACP registry that were added and answered amux, on " + time.Now().UTC().Format(time.DateOnly) +
			".\n# id, version in the registry, package; how it names itself\n" + strings.Join(rows, "\n") + "\n"
		if err := os.WriteFile("result.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// handshake runs an agent until it asks for a sign-in, or fails for want of a model, and
// returns its row of result.txt.
func handshake(t *testing.T, p place, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	amux := func(args ...string) ([]byte, string) {
		runtime, err := os.MkdirTemp("", "amux-r-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(runtime)
		cmd := exec.CommandContext(ctx, p.amux, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AGENT_MUX_CONFIG_DIR=" + p.config, "XDG_RUNTIME_DIR=" + runtime, "LANG=C.UTF-8"}
		cmd.Dir = t.TempDir()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		out, _ := cmd.Output() // nobody is signed in: the run fails
		return out, stderr.String()
	}
	info, errors := amux("agents", "info", name(id), "--json")
	var agent struct {
		Origin struct{ ID, Version, Package, Integrity string }
	}
	if err := json.Unmarshal(info, &agent); err != nil || agent.Origin.ID != id || agent.Origin.Integrity == "" {
		t.Fatalf("amux agents info: %v: %s%s", err, info, errors)
	}
	// Some wait for a network that is not there: what counts has come by then.
	events, errors := amux("run", name(id), "hi", "--json", "--timeout", "25s")
	var first struct {
		Run string `json:"run_id"`
	}
	line, _, _ := bytes.Cut(events, []byte("\n"))
	if err := json.Unmarshal(line, &first); err != nil || first.Run == "" {
		t.Fatalf("amux run: %v: %s%s", err, events, errors)
	}
	journal, err := os.ReadFile(filepath.Join(p.config, "runs", first.Run, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(journal, []byte(`"agentCapabilities"`)) {
		t.Fatalf("the agent did not answer initialize: %s%s", events, errors)
	}
	itself := cmp.Or(string(answer.Find(journal)), "it does not name itself")
	amux("rm", first.Run)
	return fmt.Sprintf("%s %s %s; %s", id, agent.Origin.Version, agent.Origin.Package, itself)
}
