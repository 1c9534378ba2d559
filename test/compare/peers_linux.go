package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/amux-dev/amux/internal/test/npm"
	"github.com/amux-dev/amux/internal/test/toolchain"
)

// agentMuxPackage is where agent-mux says that it is published.
const agentMuxPackage = "@a5c-ai/agent-mux"

// peers are the programs that amux is compared with.
type peers struct {
	node     string // the Node.js that they run on
	acpx     string
	agentMux string   // "" if there is none
	versions string   // of what is compared
	notes    []string // below the table
}

// findPeers installs what package-lock.json pins into .cache/compare.
func findPeers(agentMux string) (*peers, error) {
	root, err := toolchain.Root()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	work := filepath.Join(root, ".cache", "compare")
	if err := npm.Install(ctx, filepath.Join(root, "test", "compare"), work); err != nil {
		return nil, err
	}
	modules := filepath.Join(work, "node_modules")
	nodes, err := filepath.Glob(filepath.Join(modules, "node-linux-*", "bin", "node"))
	if err != nil || len(nodes) != 1 {
		return nil, fmt.Errorf("npm installed %d Node.js for this machine, want 1", len(nodes))
	}
	p := &peers{node: nodes[0], acpx: filepath.Join(modules, "acpx", "dist", "cli.js")}
	for _, pkg := range []string{filepath.Dir(filepath.Dir(p.node)), filepath.Join(modules, "acpx")} {
		name, version, err := packageVersion(pkg)
		if err != nil {
			return nil, err
		}
		p.versions += name + " " + version + ", "
	}
	if agentMux == "" {
		p.notes = append(p.notes, "agent-mux is not measured: "+publishedAgentMux(ctx))
		return p, nil
	}
	if p.agentMux, err = filepath.Abs(agentMux); err != nil {
		return nil, err
	}
	if p.agentMux, err = filepath.EvalSymlinks(p.agentMux); err != nil {
		return nil, err
	}
	name, version, err := packageVersion(filepath.Dir(p.agentMux))
	p.versions += name + " " + version + ", "
	return p, err
}

// packageVersion reads the package.json of dir, or of the nearest folder above it.
func packageVersion(dir string) (name, version string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
		return packageVersion(parent)
	}
	if err != nil {
		return "", "", err
	}
	var manifest struct{ Name, Version string }
	err = json.Unmarshal(data, &manifest)
	return manifest.Name, manifest.Version, err
}

// publishedAgentMux asks the npm registry for agent-mux. It is not installed from there:
// without a lock file nobody knows what that would run.
func publishedAgentMux(ctx context.Context) string {
	if os.Getenv("AMUX_TEST_OFFLINE") != "" {
		return "AMUX_TEST_OFFLINE is set; to measure one that you have: make compare AGENT_MUX=.../amux.js"
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var failure bytes.Buffer
	view := exec.CommandContext(ctx, "npm", "view", agentMuxPackage, "version", "--loglevel=error")
	view.Stderr = &failure
	version, err := view.Output()
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return fmt.Sprintf("install %s@%s yourself, and then: make compare AGENT_MUX=.../amux.js", agentMuxPackage, bytes.TrimSpace(version))
	case exit != nil && bytes.Contains(failure.Bytes(), []byte("E404")):
		return "npm does not find " + agentMuxPackage + " in its registry here (E404); to measure one that you have: make compare AGENT_MUX=.../amux.js"
	default:
		return fmt.Sprintf("the npm registry could not be asked for %s: %v", agentMuxPackage, err)
	}
}
