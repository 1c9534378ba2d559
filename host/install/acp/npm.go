package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// npmLock is what counts of a package-lock.json.
type npmLock struct {
	LockfileVersion int                   `json:"lockfileVersion"`
	Packages        map[string]npmPackage `json:"packages"`
}

type npmPackage struct {
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
	InBundle  bool   `json:"inBundle"`
	Scripts   bool   `json:"hasInstallScript"`
	Link      bool   `json:"link"`
}

// npm installs a package of npm. The first installation makes a package-lock.json, later
// ones follow it.
func (s *Store) npm(ctx context.Context, dir string, a Installed, pins pinned) (outcome, error) {
	name, version, err := a.Way.split()
	if err != nil {
		return outcome{}, err
	}
	manifest, err := json.Marshal(map[string]any{"private": true, "dependencies": map[string]string{name: version}})
	if err != nil {
		return outcome{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o600); err != nil {
		return outcome{}, install.WriteError(err)
	}
	verb := "install"
	lockPath := filepath.Join(dir, "package-lock.json")
	if pins.lock != nil {
		verb = "ci"
		if err := os.WriteFile(lockPath, pins.lock, 0o600); err != nil {
			return outcome{}, install.WriteError(err)
		}
	}
	argv := []string{"npm", verb, "--prefix", dir, "--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"}
	if !a.Scripts {
		argv = append(argv, "--ignore-scripts")
	}
	if _, err := s.run(ctx, dir, argv...); err != nil {
		return outcome{}, err
	}
	data, err := foreign.Read(lockPath, foreign.Rule{Limit: maxDocument})
	if err != nil {
		return outcome{}, install.WriteError(err)
	}
	integrity, scripts, err := checkNPMLock(data, name, version)
	if err != nil {
		return outcome{}, err
	}
	if pins.integrity != "" && integrity != pins.integrity {
		return outcome{}, changed(a, pins.integrity, integrity)
	}
	if len(scripts) > 0 && !a.Scripts {
		s.Note("did not run the install scripts of %s; if the agent does not start: --update --scripts", printable.Line(strings.Join(scripts, ", ")))
	}
	command, err := npmCommand(dir, name, a.Way.Command)
	if err != nil {
		return outcome{}, err
	}
	return outcome{"node_modules/.bin/" + command, integrity, data}, nil
}

// checkNPMLock returns the hash of a package, and which packages have install scripts.
// All that was fetched must have a hash.
func checkNPMLock(data []byte, name, version string) (integrity string, scripts []string, err error) {
	bad := func(format string, args ...any) (string, []string, error) {
		return "", nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "npm package %s %s: %s", name, version, fmt.Sprintf(format, args...)).
			WithHint("nothing was installed; report it to the registry")
	}
	var lock npmLock
	if err := json.Unmarshal(data, &lock); err != nil || lock.LockfileVersion < 2 {
		return bad("npm wrote no package-lock.json of version 2 or later")
	}
	for at, p := range lock.Packages {
		if at == "" {
			continue
		}
		if p.Link || p.Integrity == "" && !p.InBundle {
			return bad("%.120q has no hash", at)
		}
		if p.Scripts {
			scripts = append(scripts, strings.TrimPrefix(at, "node_modules/"))
		}
	}
	main := lock.Packages["node_modules/"+name]
	if main.Version != version || main.Integrity == "" {
		return bad("npm installed version %.60q", main.Version)
	}
	slices.Sort(scripts)
	return main.Integrity, scripts, nil
}

// npmCommand is the file of a package's command in node_modules/.bin, chosen as npx does.
func npmCommand(dir, name, wanted string) (string, error) {
	data, err := foreign.Read(filepath.Join(dir, "node_modules", filepath.FromSlash(name), "package.json"), foreign.Rule{Limit: maxDocument})
	if err != nil {
		return "", install.WriteError(err)
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "npm package %s: its package.json is malformed", name)
	}
	bins := map[string]string{}
	if single := ""; json.Unmarshal(manifest.Bin, &single) == nil && single != "" {
		bins[path.Base(name)] = single
	} else {
		_ = json.Unmarshal(manifest.Bin, &bins)
	}
	command := wanted
	if command == "" {
		files := map[string]bool{}
		for bin, file := range bins {
			files[path.Clean(file)] = true
			command = max(command, bin)
		}
		if base := path.Base(name); bins[base] != "" {
			command = base
		} else if len(files) != 1 {
			command = ""
		}
	}
	if bins[command] == "" || !commandRule.MatchString(command) {
		return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "npm package %s has no command %s", name, printable.Line(command)).
			WithHint("report it to the registry")
	}
	if runtime.GOOS == "windows" {
		command += ".cmd"
	}
	return command, nil
}
