package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every command in the guide is run, in its order, in one shell.
func TestWritingAnAdapter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	var commands []string
	for i, block := range strings.Split(page(t, "docs/writing-an-adapter.md"), "```") {
		if i%2 == 0 || !strings.HasPrefix(block, "console\n") {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "console\n")) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				t.Errorf("a line that is no command: %q", line)
			}
			commands = append(commands, command)
		}
	}
	out := follow(t, commands, 15)
	for _, want := range []string{"You said hello", "✓ acme 0.1.0: signed by acme", "signed by acme"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}

// And every command in the documentation of package sdk.
func TestPackageDoc(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	_, text, found := strings.Cut(page(t, "sdk/doc.go"), "From nothing to a signed release:\n//\n")
	if !found {
		t.Fatal("sdk/doc.go does not lead to a release")
	}
	var commands []string
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		// This checkout's SDK, in the place of the released one.
		commands = append(commands, strings.Replace(command, "plugin new acme", `plugin new acme --sdk "$AMUX"`, 1))
	}
	if out := follow(t, commands, 8); !strings.Contains(out, "signed acme 0.1.0") || !strings.Contains(out, "all 21 checks passed") {
		t.Errorf("nothing was signed, or tested:\n%s", out)
	}
}

// page is a file of the checkout.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// follow runs commands, of which there are at least so many, and returns what they
// and their shell have printed.
func follow(t *testing.T, commands []string, least int) string {
	t.Helper()
	if len(commands) < least {
		t.Fatalf("only %d commands were found", len(commands))
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, command := range commands {
		script.WriteString("echo '+ '" + quoteShell(command) + "\n" + command)
	}
	cmd := exec.Command("sh", "-e", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"HOME=" + t.TempDir(), "PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "AMUX=" + root, "AGENT_MUX_PROJECT_DIR=" + cmd.Dir,
		"GOPROXY=off", "GOFLAGS=", "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE"),
	}
	out, err := patiently(t, cmd, 3*time.Minute)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func quoteShell(text string) string {
	return "'" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "'", `'\''`) + "'"
}
