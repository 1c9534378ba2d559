package mcp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/netns"
	"github.com/amux-dev/amux/internal/test/npm"
	"github.com/amux-dev/amux/internal/test/toolchain"
)

// leftOut says why the clients of others are not tried; empty if they are.
var leftOut = os.Getenv("AMUX_TEST_MCP_WITHOUT")

func inspectorDir() string { return filepath.Join("..", "..", ".cache", "inspector") }

// TestMain fetches the clients, then runs the tests where there is loopback alone.
func TestMain(m *testing.M) {
	flag.Parse()
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/mcp:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func testMain(m *testing.M) (int, error) {
	if netns.Inside() {
		if err := netns.Up(); err != nil {
			return 1, err
		}
		return m.Run(), nil
	}
	why, err := fetch()
	if err != nil {
		return 1, err
	}
	if err := os.Setenv("AMUX_TEST_MCP_WITHOUT", why); err != nil {
		return 1, err
	}
	return netns.Rerun()
}

// fetch installs the clients. why is the reason if they are left out.
func fetch() (why string, err error) {
	if testing.Short() {
		return "-short leaves it out", nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "npm is not installed", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if _, err := toolchain.Install(ctx); errors.Is(err, toolchain.ErrOffline) {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	if err := npm.Install(ctx, filepath.Join("testdata", "inspector"), inspectorDir()); errors.Is(err, npm.ErrOffline) {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}
