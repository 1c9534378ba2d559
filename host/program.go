package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// program is an agent's CLI as it was found.
type program struct {
	path    string // absolute; "" if the plugin brings it
	version string // "" if it was not asked or did not tell
}

// programs finds the CLIs of agents, and remembers their versions.
type programs struct {
	path string // of the file that remembers
}

// find finds the agent's CLI in the caller's PATH and checks platform and
// version as the adapter declares them.
func (p programs) find(ctx context.Context, agent *pluginapi.Agent, env []string, cwd string) (program, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if !platformOK(agent) {
		return program{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled,
			"agent %s does not run on %s, only on %s", agent.Id, platform, strings.Join(agent.Platforms, ", ")).
			WithHint("use another agent; see: amux agents list")
	}
	if agent.Program == "" {
		return program{}, nil
	}
	path := lookPath(agent.Program, env, cwd)
	if path == "" {
		return program{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled,
			"agent %s is not installed: no program %q in PATH", agent.Id, agent.Program).
			WithHint("%s", installHint(agent))
	}
	version := p.version(ctx, agent, path, env)
	minimum := agent.GetVersions().GetMinimum()
	if minimum != "" && version != "" && older(version, minimum) {
		return program{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled,
			"agent %s is too old: %s is version %s, and at least %s is needed", agent.Id, path, version, minimum).
			WithHint("%s", installHint(agent))
	}
	return program{path, version}, nil
}

func platformOK(agent *pluginapi.Agent) bool {
	if len(agent.Platforms) == 0 {
		return true
	}
	for _, platform := range agent.Platforms {
		if platform == runtime.GOOS || platform == runtime.GOOS+"/"+runtime.GOARCH {
			return true
		}
	}
	return false
}

func installHint(agent *pluginapi.Agent) string {
	for _, in := range agent.Installs {
		if len(in.Argv) > 0 && (len(in.Platforms) == 0 || contains(in.Platforms, runtime.GOOS)) {
			return "install it: " + strings.Join(in.Argv, " ")
		}
	}
	return "see: amux agents info " + agent.Id
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// lookPath is exec.LookPath for a caller's environment and directory. A name
// with a separator is a path; relative entries of PATH are not searched, so that
// a repository cannot bring its own agent.
func lookPath(name string, env []string, cwd string) string {
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) || filepath.IsAbs(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		return executable(name)
	}
	for _, dir := range filepath.SplitList(process.EnvValue(env, "PATH")) {
		if filepath.IsAbs(dir) {
			if path := executable(filepath.Join(dir, name)); path != "" {
				return path
			}
		}
	}
	return ""
}

func executable(path string) string {
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

func older(version, minimum string) bool {
	v, err1 := semver.NewVersion(version)
	m, err2 := semver.NewVersion(minimum)
	return err1 == nil && err2 == nil && v.LessThan(m)
}

// versionEntry is what programs.json remembers of a CLI, for as long as its file
// is the same.
type versionEntry struct {
	Size    int64  `json:"size"`
	Mtime   int64  `json:"mtime_ns"`
	Target  string `json:"target"`
	Version string `json:"version"`
}

// version asks a CLI for its version, or remembers the answer.
func (p programs) version(ctx context.Context, agent *pluginapi.Agent, path string, env []string) string {
	v := agent.GetVersions()
	if len(v.GetArgs()) == 0 {
		return ""
	}
	now, ok := fileEntry(path)
	cache := p.read()
	key := versionKey(agent, path)
	if old, found := cache[key]; found && ok && old.same(now) {
		return old.Version
	}
	result := command{env: env}.run(ctx, append([]string{path}, v.Args...))
	pattern, err := regexp.Compile("(?m)" + v.Pattern)
	if err != nil {
		return ""
	}
	match := pattern.FindSubmatch(append(result.Stdout, result.Stderr...))
	if len(match) < 2 {
		return ""
	}
	now.Version = string(match[1])
	cache[key] = now
	p.write(cache)
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

func (p programs) read() map[string]versionEntry {
	cache := map[string]versionEntry{}
	if data, err := foreign.Read(p.path, foreign.Rule{Limit: 4 << 20, Private: true}); err == nil {
		_ = json.Unmarshal(data, &cache) // a spoilt cache is an empty one
	}
	return cache
}

// write replaces the cache; two writers may lose an entry, which is then
// asked again.
func (p programs) write(cache map[string]versionEntry) {
	data, err := json.Marshal(cache)
	if err != nil || os.MkdirAll(filepath.Dir(p.path), 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(p.path), ".programs")
	if err != nil {
		return
	}
	_, err = tmp.Write(data)
	if tmp.Close() != nil || err != nil || os.Rename(tmp.Name(), p.path) != nil {
		_ = os.Remove(tmp.Name())
	}
}

// known is what version has remembered.
func (p programs) known(agent *pluginapi.Agent, path string) string {
	if path == "" {
		return ""
	}
	entry, found := p.read()[versionKey(agent, path)]
	if now, ok := fileEntry(path); !found || !ok || !entry.same(now) {
		return ""
	}
	return entry.Version
}

// forget has the next version ask.
func (p programs) forget(agent *pluginapi.Agent, path string) {
	cache := p.read()
	delete(cache, versionKey(agent, path))
	p.write(cache)
}
