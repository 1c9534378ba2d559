// Package real runs amux with the real, pinned agents against the fake model, in
// a network namespace that has only loopback. See README.md in this folder.
package real

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/netns"
	"github.com/amux-dev/amux/internal/test/npm"
	"github.com/amux-dev/amux/internal/test/toolchain"
)

// scenarioTime bounds one scenario, also where many run on a busy machine.
const scenarioTime = 2 * time.Minute

// editorDir has the editors of TestEditor, which are those of test/acp.
func editorDir(root string) string { return filepath.Join(root, ".cache", "acp-editor") }

// installEditor fetches the official SDK, with which they are made.
func installEditor(ctx context.Context, root string) error {
	return npm.Install(ctx, filepath.Join(root, "test", "acp", "testdata", "editor"), editorDir(root), "editor.mjs", "agents.mjs")
}

// tc is set by TestMain before any test runs.
var tc *toolchain.Toolchain

func TestMain(m *testing.M) {
	if os.Getenv(mcpEnv) == "1" {
		if err := serveMCP(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "mcp:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/real:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func testMain(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err error
	tc, err = toolchain.Install(ctx)
	if errors.Is(err, toolchain.ErrOffline) {
		fmt.Printf("%v\n%s\n", err, summary(0, 0, 0, len(agents)*len(scenarios)))
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	if err := installEditor(ctx, tc.Root); err != nil {
		return 1, err
	}
	if !netns.Inside() {
		return netns.Rerun()
	}
	if err := netns.Up(); err != nil {
		return 1, err
	}
	// Agents wait more than they work.
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set(strconv.Itoa(runtime.GOMAXPROCS(0) * 3 / 2)); err != nil {
			return 1, err
		}
	}
	now := map[string]parts{}
	if *update || os.Getenv(onlyChanged) == "1" {
		if now, err = dependencies(tc.Root); err != nil {
			return 1, err
		}
	}
	if os.Getenv(onlyChanged) == "1" && !*update {
		proof, err := os.ReadFile(proofFile)
		if err != nil {
			return 1, err
		}
		chosen.compare(string(proof), now)
	}
	code := m.Run()
	if err := report.print(os.Stdout); err != nil {
		return 1, err
	}
	if *update {
		return code, updateProof(now)
	}
	return code, nil
}
