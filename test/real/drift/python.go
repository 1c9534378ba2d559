package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// raisePython pins the newest version of a package of PyPI's as raise does, and all
// that it needs, with the hashes of the files for this machine.
func raisePython(ctx context.Context, dir, pkg string) (string, error) {
	path := filepath.Join(dir, "requirements.in")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	pin := regexp.MustCompile(`(?m)^(` + regexp.QuoteMeta(pkg) + `(?:\[[^\]]*\])?)==(\S+)$`)
	pinned := pin.FindSubmatch(data)
	if pinned == nil {
		return "", fmt.Errorf("%s does not pin %s", path, pkg)
	}
	files, err := resolve(ctx, string(pinned[1]))
	if err != nil {
		return "", err
	}
	var lock strings.Builder
	newest := ""
	for _, f := range files {
		if f.Metadata.Name == pkg {
			newest = f.Metadata.Version
		}
		fmt.Fprintf(&lock, "%s==%s --hash=sha256:%s\n", f.Metadata.Name, f.Metadata.Version, f.Download.Archive.Hashes["sha256"])
	}
	switch newest {
	case "":
		return "", fmt.Errorf("pip did not resolve %s", pkg)
	case string(pinned[2]):
		return "", nil
	}
	if err := os.WriteFile(path, pin.ReplaceAll(data, []byte("${1}=="+newest)), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "requirements.txt"), []byte(lock.String()), 0o644); err != nil {
		return "", err
	}
	return string(pinned[2]) + " → " + newest, nil
}

// file is one that pip would install.
type file struct {
	Download struct {
		Archive struct {
			Hashes map[string]string `json:"hashes"`
		} `json:"archive_info"`
	} `json:"download_info"`
	Metadata struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"metadata"`
}

// resolve asks pip what it would install for a requirement.
func resolve(ctx context.Context, requirement string) ([]file, error) {
	pip := exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
		"--dry-run", "--ignore-installed", "--only-binary=:all:", "--report", "-", requirement)
	var complaint strings.Builder
	pip.Stderr = &complaint
	output, err := pip.Output()
	if err != nil {
		return nil, fmt.Errorf("pip install --dry-run %s: %w\n%s", requirement, err, complaint.String())
	}
	var report struct {
		Install []file `json:"install"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return nil, fmt.Errorf("read pip's report about %s: %w", requirement, err)
	}
	return report.Install, nil
}
