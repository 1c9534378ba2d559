// Package program finds the programs of the caller's world, asks agents' CLIs for their
// versions, and runs short commands of which nothing is left when they have ended.
package program

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Agent is an agent's CLI as it was found.
type Agent struct {
	Path    string // absolute; "" if the plugin brings it
	Version string // "" if it was not asked or did not tell
}

// Versions finds the CLIs of agents. It is the path of the file that remembers their
// versions.
type Versions string

// Find finds the agent's CLI in the caller's PATH and checks platform and
// version as the adapter declares them.
func (v Versions) Find(ctx context.Context, agent *pluginapi.Agent, env []string, cwd string) (Agent, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if !PlatformOK(agent) {
		return Agent{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled,
			"agent %s does not run on %s, only on %s", agent.Id, platform, strings.Join(agent.Platforms, ", ")).
			WithHint("use another agent; see: amux agents list")
	}
	if agent.Program == "" {
		return Agent{}, nil
	}
	path := Look(agent.Program, env, cwd)
	if path == "" {
		return Agent{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled,
			"agent %s is not installed: no program %q in PATH", agent.Id, agent.Program).
			WithHint("%s", InstallHint(agent))
	}
	found := Agent{path, v.Ask(ctx, agent, path, env)}
	return found, found.Check(agent)
}

// Check returns an error if the version is older than the adapter takes.
func (a Agent) Check(agent *pluginapi.Agent) error {
	minimum := agent.GetVersions().GetMinimum()
	if minimum == "" || a.Version == "" || !Older(a.Version, minimum) {
		return nil
	}
	return pluginapi.Errorf(pluginapi.CodeAgentNotInstalled,
		"agent %s is too old: %s is version %s, and at least %s is needed", agent.Id, a.Path, a.Version, minimum).
		WithHint("%s", InstallHint(agent))
}

// PlatformOK reports whether an agent runs on this system.
func PlatformOK(agent *pluginapi.Agent) bool { return RunsOn(agent, runtime.GOOS, runtime.GOARCH) }

// RunsOn reports whether an agent runs on a system, as GOOS and GOARCH name it.
func RunsOn(agent *pluginapi.Agent, system, arch string) bool {
	return len(agent.Platforms) == 0 || slices.Contains(agent.Platforms, system) || slices.Contains(agent.Platforms, system+"/"+arch)
}

// InstallHint names the command that installs an agent's CLI.
func InstallHint(agent *pluginapi.Agent) string {
	for _, in := range agent.Installs {
		if len(in.Argv) > 0 && (len(in.Platforms) == 0 || slices.Contains(in.Platforms, runtime.GOOS)) {
			return "install it: " + strings.Join(in.Argv, " ")
		}
	}
	return "see: amux agents info " + agent.Id
}

// Look is exec.LookPath for a caller's environment and directory. A name
// with a separator is a path; relative entries of PATH are not searched, so that
// a repository cannot bring its own agent.
func Look(name string, env []string, cwd string) string {
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) || filepath.IsAbs(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		return Executable(name)
	}
	for _, dir := range filepath.SplitList(process.EnvValue(env, "PATH")) {
		if filepath.IsAbs(dir) {
			if path := Executable(filepath.Join(dir, name)); path != "" {
				return path
			}
		}
	}
	return ""
}

// Executable is the program at a path, with the ending that Windows may want; "" if there
// is none.
func Executable(path string) string {
	names := []string{path}
	if runtime.GOOS == "windows" {
		names = []string{path + ".exe", path + ".cmd", path + ".bat", path}
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0) {
			return name
		}
	}
	return ""
}

// Older reports whether a version is known to be older than another.
func Older(version, minimum string) bool {
	v, err1 := semver.NewVersion(version)
	m, err2 := semver.NewVersion(minimum)
	return err1 == nil && err2 == nil && v.LessThan(m)
}

// Stamp changes when the file of a program does; "" if there is none.
func Stamp(path string) string {
	entry, ok := fileEntry(path)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d %s", entry.Size, entry.Mtime, entry.Target)
}

// versionEntry is what programs.json remembers of a CLI, for as long as its file
// is the same.
type versionEntry struct {
	Size    int64  `json:"size"`
	Mtime   int64  `json:"mtime_ns"`
	Target  string `json:"target"`
	Version string `json:"version"`
}

// Ask asks a CLI for its version, or remembers the answer.
func (v Versions) Ask(ctx context.Context, agent *pluginapi.Agent, path string, env []string) string {
	how := agent.GetVersions()
	if len(how.GetArgs()) == 0 {
		return ""
	}
	now, ok := fileEntry(path)
	return v.remember(versionKey(agent, path), now, ok, func() string {
		return Command{Env: env}.version(ctx, append([]string{path}, how.Args...), how.Pattern)
	})
}

// AskElsewhere is Ask for a CLI at another place. stamp changes when the CLI does, and run runs
// a command there.
func (v Versions) AskElsewhere(agent *pluginapi.Agent, place, path, stamp string, run func(argv []string) (stdout, stderr []byte)) string {
	how := agent.GetVersions()
	if len(how.GetArgs()) == 0 {
		return ""
	}
	return v.remember(place+":"+versionKey(agent, path), versionEntry{Target: stamp}, stamp != "", func() string {
		stdout, stderr := run(append([]string{path}, how.Args...))
		return versionIn(append(stdout, stderr...), how.Pattern)
	})
}

// remember gives the version of a CLI that is as it was, or asks. known: now says how it is.
func (v Versions) remember(key string, now versionEntry, known bool, ask func() string) string {
	cache := v.read()
	if old, found := cache[key]; found && known && old.same(now) {
		return old.Version
	}
	if now.Version = ask(); now.Version != "" {
		cache[key] = now
		v.write(cache)
	}
	return now.Version
}

func versionKey(agent *pluginapi.Agent, path string) string {
	return path + " " + strings.Join(agent.GetVersions().GetArgs(), " ")
}

// same reports whether the file is the one that was asked.
func (e versionEntry) same(now versionEntry) bool {
	return e.Size == now.Size && e.Mtime == now.Mtime && e.Target == now.Target
}

func fileEntry(path string) (versionEntry, bool) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return versionEntry{}, false
	}
	info, err := os.Stat(target)
	if err != nil {
		return versionEntry{}, false
	}
	return versionEntry{Size: info.Size(), Mtime: info.ModTime().UnixNano(), Target: target}, true
}

func (v Versions) read() map[string]versionEntry {
	cache := map[string]versionEntry{}
	if data, err := foreign.Read(string(v), foreign.Rule{Limit: 4 << 20, Private: true}); err == nil {
		_ = json.Unmarshal(data, &cache) // a spoilt cache is an empty one
	}
	return cache
}

// write replaces the cache; two writers may lose an entry, which is then
// asked again.
func (v Versions) write(cache map[string]versionEntry) {
	data, err := json.Marshal(cache)
	if err != nil || os.MkdirAll(filepath.Dir(string(v)), 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(string(v)), ".programs")
	if err != nil {
		return
	}
	_, err = tmp.Write(data)
	if tmp.Close() != nil || err != nil || os.Rename(tmp.Name(), string(v)) != nil {
		_ = os.Remove(tmp.Name())
	}
}

// Known is what Ask has remembered.
func (v Versions) Known(agent *pluginapi.Agent, path string) string {
	if path == "" {
		return ""
	}
	entry, found := v.read()[versionKey(agent, path)]
	if now, ok := fileEntry(path); !found || !ok || !entry.same(now) {
		return ""
	}
	return entry.Version
}

// Forget has the next Ask ask.
func (v Versions) Forget(agent *pluginapi.Agent, path string) {
	cache := v.read()
	delete(cache, versionKey(agent, path))
	v.write(cache)
}

// Lacks names the prerequisite of an installation that is missing or too old; "" if all
// are there.
func Lacks(ctx context.Context, in *pluginapi.Install, env []string, cwd string) string {
	for _, p := range in.Prerequisites {
		if Look(p.Program, env, cwd) == "" {
			return "it needs " + p.Program + ", which is not in PATH"
		}
		if p.Minimum == "" {
			continue
		}
		version := Command{Env: env, Cwd: cwd}.version(ctx, append([]string{p.Program}, p.Args...), p.Pattern)
		if Older(version, p.Minimum) {
			return "it needs " + p.Program + " " + p.Minimum + " or later, and " + version + " is there"
		}
	}
	return ""
}
