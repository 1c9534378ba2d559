// Command drift runs the scenarios of test/real with the newest versions of the
// agents and says what differs from the pinned ones. It works on a copy of the
// checkout in .cache/drift, whose pins it raises: nothing of the checkout changes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

func main() {
	agent := flag.String("agent", "", "look at this agent only")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	drifted, err := drift(ctx, *agent)
	if err != nil {
		fmt.Fprintln(os.Stderr, "drift:", err)
		os.Exit(2)
	}
	if drifted {
		os.Exit(1)
	}
}

func drift(ctx context.Context, agent string) (bool, error) {
	root, err := toolchain.Root()
	if err != nil {
		return false, err
	}
	tree := filepath.Join(root, ".cache", "drift")
	if err := copyTree(ctx, root, tree); err != nil {
		return false, err
	}
	var raised []string
	for _, pin := range toolchain.Pins() {
		if agent != "" && pin.Agent != agent {
			continue
		}
		raise := raise
		if pin.Python {
			raise = raisePython
		}
		newest, err := raise(ctx, filepath.Join(tree, "test", "real", "agents", pin.Dir), pin.Package)
		if err != nil {
			return false, fmt.Errorf("%s: %w", pin.Agent, err)
		}
		if newest != "" {
			fmt.Printf("%s: %s\n", pin.Agent, newest)
			raised = append(raised, pin.Agent)
		}
	}
	if len(raised) == 0 {
		fmt.Println("the pinned versions are the newest")
		return false, nil
	}
	pinned, err := scenarios(ctx, root, raised)
	if err != nil {
		return false, fmt.Errorf("with the pinned versions: %w", err)
	}
	newest, err := scenarios(ctx, tree, raised)
	if err != nil {
		return false, fmt.Errorf("with the newest versions: %w", err)
	}
	return compare(os.Stdout, pinned, newest), nil
}

// copyTree copies what git tracks or would, as it is in the working tree. Agents that
// the copy has installed before stay.
func copyTree(ctx context.Context, from, to string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(output), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// raise pins the newest version of a package and says from what to what; nothing if
// it is pinned already.
func raise(ctx context.Context, dir, pkg string) (string, error) {
	view := exec.CommandContext(ctx, "npm", "view", pkg, "version")
	view.Dir = dir
	output, err := view.Output()
	if err != nil {
		return "", fmt.Errorf("npm view %s: %w", pkg, err)
	}
	newest := strings.TrimSpace(string(output))
	path := filepath.Join(dir, "package.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var manifest map[string]any
	if err := json.Unmarshal(data, &manifest); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	pinned := ""
	for _, kind := range []string{"dependencies", "optionalDependencies"} {
		if list, ok := manifest[kind].(map[string]any); ok && list[pkg] != nil {
			pinned, _ = list[pkg].(string)
			list[pkg] = newest
		}
	}
	switch pinned {
	case "":
		return "", fmt.Errorf("%s does not pin %s", path, pkg)
	case newest:
		return "", nil
	}
	if data, err = json.MarshalIndent(manifest, "", "  "); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return "", err
	}
	lock := exec.CommandContext(ctx, "npm", "install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	lock.Dir = dir
	if output, err := lock.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, output)
	}
	return pinned + " → " + newest, nil
}

// cell is one of the table agent × scenario, as test/real writes it beside its report.
type cell struct {
	Agent    string `json:"agent"`
	Scenario string `json:"scenario"`
	State    string `json:"state"` // passed, failed, n.a., not run
}

// scenarios runs the scenarios of some agents in a checkout.
func scenarios(ctx context.Context, dir string, agents []string) ([]cell, error) {
	build := exec.CommandContext(ctx, "make", "-s", "build")
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make build: %w\n%s", err, output)
	}
	report := filepath.Join(dir, ".cache", "scenarios.txt")
	if err := os.MkdirAll(filepath.Dir(report), 0o755); err != nil {
		return nil, err
	}
	_ = os.Remove(report + ".json")
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", "30m", "-run", "^TestAgents$/^("+strings.Join(agents, "|")+")$", "./test/real")
	test.Dir, test.Stderr = dir, os.Stderr
	test.Env = append(os.Environ(), "AMUX_TEST_REPORT="+report)
	runErr := test.Run() // a scenario that fails is what is looked for
	data, err := os.ReadFile(report + ".json")
	if err != nil {
		return nil, errors.Join(runErr, err)
	}
	var cells []cell
	return cells, json.Unmarshal(data, &cells)
}

// compare says which scenarios end in another way, and whether there are any.
func compare(out io.Writer, pinned, newest []cell) bool {
	before := map[[2]string]string{}
	for _, c := range pinned {
		before[[2]string{c.Agent, c.Scenario}] = c.State
	}
	same, differ := 0, 0
	for _, c := range newest {
		was := before[[2]string{c.Agent, c.Scenario}]
		switch {
		case c.State == "not run":
		case was == c.State:
			same++
		default:
			differ++
			fmt.Fprintf(out, "%s: %s: %s, was %s\n", c.Agent, c.Scenario, c.State, was)
		}
	}
	fmt.Fprintf(out, "drift: %d scenarios end as before, %d differ\n", same, differ)
	return differ > 0
}
