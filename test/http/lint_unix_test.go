//go:build unix

package http

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/npm"
)

// The document is one that other people's tools can work with, as Spectral says.
func TestDocumentIsLinted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); testing.Short() || err != nil {
		t.Skip("it needs Node.js, and -short leaves it out")
	}
	work, err := filepath.Abs("../../.cache/openapi-lint")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), home.Patience)
	defer cancel()
	if err := npm.Install(ctx, filepath.Join("testdata", "lint"), work, "ruleset.yaml"); errors.Is(err, npm.ErrOffline) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../../docs/schema/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(work, "node_modules", "@stoplight", "spectral-cli", "dist", "index.js"), "lint", "--fail-severity", "warn", "--ruleset", filepath.Join(work, "ruleset.yaml"), document)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
