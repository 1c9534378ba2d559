package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A plugin outside of this checkout finds the SDK, without a network, in each of the
// ways that its README.md names, and names no folder of its author's.
func TestSDKIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"HOME=" + t.TempDir(), "PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "AMUX=" + root,
		"GOPROXY=off", "GOFLAGS=", "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"),
	}
	sh := func(dir, script string) (string, error) {
		t.Helper()
		cmd := exec.Command("sh", "-e", "-c", script)
		cmd.Dir, cmd.Env = dir, append(env, "AGENT_MUX_PROJECT_DIR="+dir)
		out, err := patiently(t, cmd, 3*time.Minute)
		return string(out), err
	}
	must := func(dir, script string) {
		t.Helper()
		if out, err := sh(dir, script); err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
	}
	made := func() (plugin string) {
		t.Helper()
		folder := t.TempDir()
		must(folder, "amux plugin new acme --dir acme")
		return filepath.Join(folder, "acme")
	}

	// The README's ways, in its order.
	plugin := made()
	text, err := os.ReadFile(filepath.Join(plugin, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var ways []string
	for i, block := range strings.Split(string(text), "```") {
		if commands, ok := strings.CutPrefix(block, "console\n"); i%2 == 1 && ok {
			ways = append(ways, strings.ReplaceAll("\n"+commands, "\n$ ", "\n"))
		}
	}
	if len(ways) != 3 {
		t.Fatalf("%d ways, want 3", len(ways))
	}

	out, err := sh(plugin, "amux plugin test .")
	for _, way := range []string{"does not find the SDK", "--sdk", "go.work", "GOFLAGS=-mod=vendor"} {
		if err == nil || !strings.Contains(out, way) {
			t.Errorf("without the SDK nothing says %q: %v\n%s", way, err, out)
		}
	}
	must(plugin, ways[0])
	must(plugin, "amux plugin test .")

	plugin = made()
	folder := filepath.Dir(plugin)
	if err := os.Symlink(root, filepath.Join(folder, "amux")); err != nil {
		t.Fatal(err)
	}
	must(plugin, ways[1])
	commands := strings.Split(strings.TrimSpace(ways[2]), "\n")
	last := len(commands) - 1
	must(plugin, strings.Join(commands[:last], "\n"))
	if err := os.Remove(filepath.Join(folder, "amux")); err != nil { // vendor is enough
		t.Fatal(err)
	}
	must(plugin, commands[last])
	must(plugin, "GOFLAGS=-mod=vendor amux plugin test .")
	if out, err := sh(folder, "grep -rlF \"$AMUX\" acme"); err == nil {
		t.Errorf("these name the checkout: %s", out)
	}

	// What amux writes for a checkout is not committed.
	folder = t.TempDir()
	must(folder, `amux plugin new acme --sdk "$AMUX" --dir acme && cd acme && go test . && amux plugin test . && git init -q && git add -A`)
	out, err = sh(filepath.Join(folder, "acme"), "git diff --cached --name-only && git diff --cached | grep -F \"$AMUX\"")
	if err == nil || !strings.Contains(out, "go.mod") || strings.Contains(out, "go.work") {
		t.Errorf("committed: %v\n%s", err, out)
	}
}
