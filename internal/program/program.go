// Package program finds the CLIs of agents, asks them for their versions, and runs what adapters
// ask for.
package program

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
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
	path := command.Look(agent.Program, env, cwd)
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

// Older reports whether a version is known to be older than another.
func Older(version, minimum string) bool {
	v, err1 := parseVersion(version)
	m, err2 := parseVersion(minimum)
	return err1 == nil && err2 == nil && v.LessThan(m)
}

// parseVersion reads a version as CLIs tell it, perhaps "v1.2". Most are strict ones, which are read without a regular
// expression: to compile that takes a tenth of a millisecond, at each start.
func parseVersion(text string) (*semver.Version, error) {
	if v, err := semver.StrictNewVersion(text); err == nil {
		return v, nil
	}
	return semver.NewVersion(text)
}

// versionEntry is what programs.json remembers of a CLI, for as long as its file stays the same.
type versionEntry struct {
	Stamp   string `json:"stamp"` // as command.Stamp
	Version string `json:"version"`
}

// Ask asks a CLI for its version, or remembers the answer.
func (v Versions) Ask(ctx context.Context, agent *pluginapi.Agent, path string, env []string) string {
	how := agent.GetVersions()
	if len(how.GetArgs()) == 0 {
		return ""
	}
	return v.remember(versionKey(agent, path), command.Stamp(path), func() string {
		return versionOf(ctx, command.Command{Env: env}, append([]string{path}, how.Args...), how.Pattern)
	})
}

// AskElsewhere is Ask for a CLI at another place. stamp changes when the CLI does, and run runs
// a command there.
func (v Versions) AskElsewhere(agent *pluginapi.Agent, place, path, stamp string, run func(argv []string) (stdout, stderr []byte)) string {
	how := agent.GetVersions()
	if len(how.GetArgs()) == 0 {
		return ""
	}
	return v.remember(place+":"+versionKey(agent, path), stamp, func() string {
		stdout, stderr := run(append([]string{path}, how.Args...))
		return versionIn(append(stdout, stderr...), how.Pattern)
	})
}

// remember gives the version of a CLI whose file is as it was, or asks. stamp is "" if nobody
// knows how it is.
func (v Versions) remember(key, stamp string, ask func() string) string {
	cache := v.read()
	if old, found := cache[key]; found && stamp != "" && old.Stamp == stamp {
		return old.Version
	}
	version := ask()
	if version != "" {
		cache[key] = versionEntry{stamp, version}
		v.write(cache)
	}
	return version
}

func versionKey(agent *pluginapi.Agent, path string) string {
	return path + " " + strings.Join(agent.GetVersions().GetArgs(), " ")
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
	if stamp := command.Stamp(path); !found || stamp == "" || entry.Stamp != stamp {
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
		if command.Look(p.Program, env, cwd) == "" {
			return "it needs " + p.Program + ", which is not in PATH"
		}
		if p.Minimum == "" {
			continue
		}
		version := versionOf(ctx, command.Command{Env: env, Cwd: cwd}, append([]string{p.Program}, p.Args...), p.Pattern)
		if Older(version, p.Minimum) {
			return "it needs " + p.Program + " " + p.Minimum + " or later, and " + version + " is there"
		}
	}
	return ""
}

// versionOf runs a command, and finds a version in what it prints.
func versionOf(ctx context.Context, c command.Command, argv []string, pattern string) string {
	result := c.Exec(ctx, argv)
	return versionIn(append(result.Stdout, result.Stderr...), pattern)
}

// versionIn finds a version in what a program has printed.
func versionIn(said []byte, pattern string) string {
	expression, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return ""
	}
	if match := expression.FindSubmatch(said); len(match) > 1 {
		return string(match[1])
	}
	return ""
}

// StoreTime is how long a command may take that reads an agent's store.
const StoreTime = time.Minute

// Exec runs what adapters ask for, as c says how.
func Exec(c command.Command) func(context.Context, *pb.Exec) *pluginapi.ExecResult {
	return func(ctx context.Context, wanted *pb.Exec) *pluginapi.ExecResult {
		var result command.Result
		if wanted.GetToFile() && c.Dir != "" {
			result = c.ToFile(ctx, wanted.GetArgv())
		} else {
			result = c.Exec(ctx, wanted.GetArgv())
		}
		return &pluginapi.ExecResult{
			Argv: wanted.GetArgv(), ExitCode: int32(result.ExitCode), Stdout: result.Stdout, Stderr: result.Stderr, StdoutFile: result.File,
		}
	}
}
