// Package e2e types what users type: scripts that run the built amux and look at
// stdout, stderr and exit code. make build makes what they run.
package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "bin")
	if _, err := os.Stat(filepath.Join(bin, "amux")); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	commands := map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "oneline": oneline, "damage": damage}
	maps.Copy(commands, controlCommands)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			// A folder of sockets needs a short path.
			runtime, err := os.MkdirTemp("", "e2e")
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := stopServe(runtime); err != nil {
					t.Error(err)
				}
				os.RemoveAll(runtime)
			})
			env.Setenv("HOME", home)
			env.Setenv("XDG_RUNTIME_DIR", runtime)
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("ROOT", root)
			env.Setenv("GOCACHE", goEnv(t, "GOCACHE"))
			env.Setenv("GOMODCACHE", goEnv(t, "GOMODCACHE"))
			env.Setenv("GOFLAGS", "")
			return os.MkdirAll(home, 0o700)
		},
		Cmds: commands,
	})
}

// A program approves, answers, interrupts and prompts again, by what it reads.
func TestProgramThatAnswers(t *testing.T) {
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, amux, "run", "demo", "--json", "--input", "ndjson", "--approve", "ask")
	cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+t.TempDir())
	cmd.Dir = t.TempDir()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	say := func(line string) {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	turns := 0
	var seen []string
	say(`{"type":"prompt","text":"[approve][ask:which?]"}`)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var event struct {
			Type, State   string
			InteractionID string `json:"interaction_id"`
			Turns         int
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, event.Type)
		switch event.Type {
		case "approval_request":
			say(`{"type":"approve","interaction_id":"` + event.InteractionID + `"}`)
		case "input_required":
			say(`{"type":"answer","interaction_id":"` + event.InteractionID + `","text":"this one"}`)
		case "turn_end":
			if turns++; turns == 1 {
				say(`{"type":"prompt","text":"[say:again]"}`)
			} else {
				say(`{"type":"end"}`)
			}
		case "run_end":
			if event.State != "completed" || event.Turns != 2 {
				t.Errorf("ended %s after %d turns", event.State, event.Turns)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"approval_granted", "input_answered", "tool_result", "run_end"} {
		if !slices.Contains(seen, want) {
			t.Errorf("no %s in %v", want, seen)
		}
	}
}

// exits CODE PROGRAM ARGS…: the program ends with exactly that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// textOfEvent is what the text of an event stands behind.
const textOfEvent = `"delta":"`

// damage PATTERN: a byte of each matching file becomes another one, of an event's text or in
// the middle.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage PATTERN")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		ts.Check(err)
		at := len(data) / 2
		if i := strings.Index(string(data), textOfEvent); i >= 0 {
			at = i + len(textOfEvent) // not in a time, say, which nobody compares
		}
		data[at] ^= 1
		ts.Check(os.WriteFile(path, data, 0o600))
	}
}

// oneline: stderr of the last command is one error line, and perhaps its hint.
func oneline(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stderr")), "\n")
	errors, hints := 0, 0
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "amux: error: "):
			errors++
		case strings.HasPrefix(line, "amux: hint: "):
			hints++
		case strings.HasPrefix(line, "amux: warning: "):
		default:
			ts.Fatalf("stderr has another line: %s", line)
		}
	}
	if errors != 1 || hints > 1 {
		ts.Fatalf("%d error lines and %d hints", errors, hints)
	}
}

// goEnv is what the go command of this test uses; scripts have a HOME of their own.
func goEnv(t *testing.T, name string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if name == "GOCACHE" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(cache, "go-build")
	}
	return filepath.Join(home, "go", "pkg", "mod")
}

// TestGuideShowsTheExample compares the adapters in the guide for authors with those
// that are tested.
func TestGuideShowsTheExample(t *testing.T) {
	guide, err := os.ReadFile("../../docs/writing-an-adapter.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../docs/example-plugin/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(guide), "```go\n// adapter knows tr")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.HasSuffix(string(source), "// adapter knows tr"+shown) {
		t.Error("docs/writing-an-adapter.md and docs/example-plugin/main.go differ")
	}
	if source, err = os.ReadFile("../../docs/example-conversation/main.go"); err != nil {
		t.Fatal(err)
	}
	_, shown, _ = strings.Cut(string(guide), "```go\n// Handle turns")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.Contains(string(source), "// Handle turns"+shown) {
		t.Error("docs/writing-an-adapter.md and docs/example-conversation/main.go differ")
	}
}
