package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// uv installs a package of PyPI into a virtual environment of its own, with uv or with
// Python's own installer. The first installation makes a list of all packages with their
// hashes, later ones follow it.
func (s *Store) uv(ctx context.Context, dir string, a Installed, pins pinned) (outcome, error) {
	name, version, err := a.Way.split()
	if err != nil {
		return outcome{}, err
	}
	bin, exe := "bin", ""
	if runtime.GOOS == "windows" {
		bin, exe = "Scripts", ".exe"
	}
	venv := filepath.Join(dir, "venv")
	python := filepath.Join(venv, bin, "python"+exe)
	requirements := filepath.Join(dir, "requirements.txt")
	tool := s.uvTool
	if s.look("uv") == "" {
		tool = s.pipTool
	}
	lock, err := tool(ctx, pythonJob{dir, venv, python, requirements, a, pins.lock})
	if err != nil {
		return outcome{}, err
	}
	base, _, _ := strings.Cut(name, "[")
	integrity, err := checkRequirements(lock, base, version)
	if err != nil {
		return outcome{}, err
	}
	if pins.integrity != "" && integrity != pins.integrity {
		return outcome{}, changed(a, pins.integrity, integrity)
	}
	return outcome{"venv/" + bin + "/" + cmp.Or(a.Way.Command, base) + exe, integrity, lock}, nil
}

// pythonJob is one installation into a virtual environment.
type pythonJob struct {
	dir, venv, python, requirements string
	agent                           Installed
	lock                            []byte // that it follows; nil at the first
}

// resolved writes the list of packages: the pinned one, or what resolve finds.
func (j pythonJob) resolved(resolve func() ([]byte, error)) ([]byte, error) {
	lock := j.lock
	if lock == nil {
		var err error
		if lock, err = resolve(); err != nil {
			return nil, err
		}
	}
	return lock, install.WriteError(os.WriteFile(j.requirements, lock, 0o600))
}

// binaryOnly are the flags without which code of the packages would run while they are
// installed.
func (j pythonJob) binaryOnly(flags ...string) []string {
	if j.agent.Scripts {
		return nil
	}
	return flags
}

func (s *Store) uvTool(ctx context.Context, j pythonJob) ([]byte, error) {
	if _, err := s.run(ctx, j.dir, "uv", "venv", "--no-project", "--quiet", j.venv); err != nil {
		return nil, err
	}
	lock, err := j.resolved(func() ([]byte, error) {
		in := filepath.Join(j.dir, "requirements.in")
		if err := os.WriteFile(in, []byte(j.agent.Way.Package+"\n"), 0o600); err != nil {
			return nil, install.WriteError(err)
		}
		argv := append([]string{"uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--python", j.python}, j.binaryOnly("--only-binary", ":all:")...)
		return s.run(ctx, j.dir, append(argv, in)...)
	})
	if err != nil {
		return nil, err
	}
	argv := append([]string{"uv", "pip", "install", "--quiet", "--require-hashes", "--python", j.python}, j.binaryOnly("--only-binary", ":all:")...)
	_, err = s.run(ctx, j.dir, append(argv, "-r", j.requirements)...)
	return lock, err
}

func (s *Store) pipTool(ctx context.Context, j pythonJob) ([]byte, error) {
	if _, err := s.run(ctx, j.dir, s.python(), "-m", "venv", j.venv); err != nil {
		return nil, err
	}
	pip := func(args ...string) error {
		argv := append([]string{j.python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"}, j.binaryOnly("--only-binary", ":all:")...)
		_, err := s.run(ctx, j.dir, append(argv, args...)...)
		return err
	}
	lock, err := j.resolved(func() ([]byte, error) {
		report := filepath.Join(j.dir, "report.json")
		if err := pip("--dry-run", "--ignore-installed", "--report", report, j.agent.Way.Package); err != nil {
			return nil, err
		}
		data, err := foreign.Read(report, foreign.Rule{Limit: 64 << 20})
		if err != nil {
			return nil, install.WriteError(err)
		}
		return requirementsOf(data)
	})
	if err != nil {
		return nil, err
	}
	return lock, pip("--require-hashes", "--no-deps", "-r", j.requirements)
}

var (
	pythonName    = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	pythonVersion = pattern.New(`^[0-9][0-9A-Za-z.!+-]*$`)
)

// requirementsOf makes a list of packages with hashes of a report by pip.
func requirementsOf(report []byte) ([]byte, error) {
	var doc struct {
		Install []struct {
			Metadata struct{ Name, Version string }
			Download struct {
				Archive struct{ Hashes map[string]string } `json:"archive_info"`
			} `json:"download_info"`
		}
	}
	if err := json.Unmarshal(report, &doc); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "pip wrote a malformed report: %s", printable.Line(err.Error()))
	}
	var lines []string
	for _, p := range doc.Install {
		hash := p.Download.Archive.Hashes["sha256"]
		if !pythonName.MatchString(p.Metadata.Name) || !pythonVersion.MatchString(p.Metadata.Version) || !hashRule.MatchString(hash) {
			return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "Python package %.60q %.60q has no hash", p.Metadata.Name, p.Metadata.Version).
				WithHint("nothing was installed; report it to the registry")
		}
		lines = append(lines, fmt.Sprintf("%s==%s --hash=sha256:%s\n", p.Metadata.Name, p.Metadata.Version, hash))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "")), nil
}

// checkRequirements returns the hashes of a package in a list of packages.
func checkRequirements(lock []byte, name, version string) (string, error) {
	text := strings.ReplaceAll(strings.ReplaceAll(string(lock), "\\\r\n", " "), "\\\n", " ")
	found := ""
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		var hashes []string
		for _, field := range fields[1:] {
			if hash, ok := strings.CutPrefix(field, "--hash=sha256:"); ok && hashRule.MatchString(hash) {
				hashes = append(hashes, hash)
			}
		}
		if len(hashes) == 0 {
			return "", pluginapi.Errorf(pluginapi.CodePluginUntrusted, "Python package %.120q has no hash", fields[0]).
				WithHint("nothing was installed; report it to the registry")
		}
		is, of, _ := strings.Cut(fields[0], "==")
		is, _, _ = strings.Cut(is, "[")
		if plainName(is) == plainName(name) && of == version {
			slices.Sort(hashes)
			found = "sha256:" + hashes[0]
			if len(hashes) > 1 {
				found = "sha256:" + sum([]byte(strings.Join(hashes, "\n")))
			}
		}
	}
	if found == "" {
		return "", pluginapi.Errorf(pluginapi.CodePluginUntrusted, "Python package %s %s is not what was found", name, version).
			WithHint("nothing was installed; report it to the registry")
	}
	return found, nil
}

var separators = pattern.New(`[-_.]+`)

// plainName is a Python package's name as PEP 503 compares it.
func plainName(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }
