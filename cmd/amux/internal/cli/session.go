package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// session is one command line at work: the global flags, and what is made of them
// when it is first needed. Help and version need nothing of it.
type session struct {
	app *App

	configFlag  string
	projectFlag string
	pluginFlags []string
	verifyFlag  string
	debug       bool

	// warnings are said when the run has started: what is refused is said alone.
	warnings []string
	// denyWarning is said when the agent first asks for leave that nobody gives.
	denyWarning string

	gone []string // hashes of plugins that have left the store

	settingsRead bool
	settings     settings.Settings
	settingsErr  error
	project      *project // nil: it was not looked for yet
	host         Host
}

func (s *session) getenv(name string) string { return envValue(s.app.Env, name) }

func envValue(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// abs makes a path that the user gave absolute.
func (s *session) abs(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.app.Cwd, path)
}

// configDir is the flag, the variable, or ~/.agent-mux.
func (s *session) configDir() (string, error) {
	for _, dir := range []string{s.configFlag, s.getenv("AGENT_MUX_CONFIG_DIR")} {
		if dir != "" {
			return s.abs(dir), nil
		}
	}
	if s.app.Home == "" {
		return "", pluginapi.Errorf(pluginapi.CodeConfig, "there is no home directory to keep settings and runs in").
			WithHint("give a folder by --config-dir or AGENT_MUX_CONFIG_DIR")
	}
	return filepath.Join(s.app.Home, ".agent-mux"), nil
}

// runtimeDir is where sockets go; the path is short, since a socket's has 108
// bytes.
func (s *session) runtimeDir() string {
	if dir := s.getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) < 40 {
		return filepath.Join(dir, "amux")
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(os.TempDir(), "amux")
	}
	return "/tmp/amux-" + strconv.Itoa(os.Getuid())
}

// beside is a path next to the amux executable.
func (s *session) beside(name string) string {
	self := s.app.Executable
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	return filepath.Join(filepath.Dir(self), name)
}

func (s *session) loadSettings() (settings.Settings, error) {
	if !s.settingsRead {
		s.settingsRead = true
		dir, err := s.safeConfigDir()
		if err == nil {
			s.warnIgnored(dir)
			s.settings, err = settings.Load(dir, s.projectDir(dir))
		}
		s.settingsErr = err
	}
	return s.settings, s.settingsErr
}

// userSettings are those of the user alone, wherever the command is given.
func (s *session) userSettings() (settings.Settings, error) {
	dir, err := s.safeConfigDir()
	if err != nil {
		return settings.Settings{}, err
	}
	return settings.Load(dir, "")
}

// safeConfigDir is configDir, unless others could have put into it what they like.
func (s *session) safeConfigDir() (string, error) {
	dir, err := s.configDir()
	if err != nil {
		return "", err
	}
	return dir, safeFolder("configuration folder", dir, "choose another by --config-dir or AGENT_MUX_CONFIG_DIR")
}

// safeFolder refuses a folder that others own or may write.
func safeFolder(what, dir, way string) error {
	err := foreign.CheckFolder(dir)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		if fix := foreign.Fix(err); fix != "" {
			way = fix + "; or " + way
		}
		return pluginapi.Errorf(pluginapi.CodeConfig, "the %s %s is not used: %w", what, dir, e.Err).WithHint("%s", way)
	}
	return err
}

// overrides are the plugins that --plugin and [dev_overrides] put in the place of
// installed ones.
func (s *session) overrides() (map[string]string, error) {
	set, err := s.userSettings()
	if err != nil {
		return nil, err
	}
	return s.overridesOf(set)
}

func (s *session) overridesOf(set settings.Settings) (map[string]string, error) {
	dir, err := s.configDir()
	if err != nil {
		return nil, err
	}
	overrides := map[string]string{}
	for name, path := range set.DevOverrides {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		overrides[name] = path
	}
	for _, flag := range s.pluginFlags {
		name, path, ok := strings.Cut(flag, "=")
		if !ok || name == "" || path == "" {
			return nil, usage("--plugin %s: want NAME=PATH", flag).WithHint("for example: --plugin acme=./bin/amux-plugin-acme")
		}
		overrides[name] = s.abs(path)
	}
	return overrides, nil
}

// hostOptions are all of them, so that no command need guess what the host would
// choose by itself. Of settings only the user's matter: a project's are for runs.
func (s *session) hostOptions() (host.Options, error) {
	set, err := s.userSettings()
	if err != nil {
		return host.Options{}, err
	}
	dir, err := s.configDir()
	if err != nil {
		return host.Options{}, err
	}
	s.warnIgnored(dir)
	return s.optionsOf(set)
}

// cautious are the settings where those of the user cannot be read: what checks more
// is on.
var cautious = settings.Settings{AlwaysVerify: true}

// knownSettings are the user's as far as they can be read, for commands about runs
// that exist: what is wrong with config.toml is a warning there.
func (s *session) knownSettings() (settings.Settings, error) {
	if _, err := s.safeConfigDir(); err != nil {
		return settings.Settings{}, err
	}
	set, err := s.userSettings()
	if err != nil {
		s.warnf("config.toml is not used: %v", err)
		return cautious, nil
	}
	return set, nil
}

func (s *session) optionsOf(set settings.Settings) (host.Options, error) {
	dir, err := s.configDir()
	if err != nil {
		return host.Options{}, err
	}
	overrides, err := s.overridesOf(set)
	if err != nil {
		return host.Options{}, err
	}
	if s.verifyFlag != "" && s.verifyFlag != "always" {
		return host.Options{}, usage("--verify %s: want always", s.verifyFlag)
	}
	o := host.Options{
		ConfigDir: dir, ProjectDir: s.projectDir(dir), RuntimeDir: s.runtimeDir(),
		BundledDir: s.beside("plugins"), BundledHashes: s.app.BundledHashes, Plugins: overrides,
		ShimPath: s.beside(programName("amux-shim")), Env: s.app.Env,
		Agents: ownAgents(set), AlwaysVerify: set.AlwaysVerify || s.verifyFlag == "always", AutoMTLS: set.AutoMTLS, Subreaper: true, Version: s.app.Version,
		IndexProjects: set.ProjectIndex, Logger: s.logger(), OnOrphan: s.findHost,
	}
	return o, nil
}

// ownAgents are the user's own.
func ownAgents(set settings.Settings) map[string]host.Launch {
	agents := map[string]host.Launch{}
	for name, a := range set.Agents {
		agents[name] = host.Launch{Adapter: a.Adapter, Line: a.Line, Argv: a.Argv}
	}
	return agents
}

func (s *session) logger() hclog.Logger {
	if !s.debug {
		return nil
	}
	return hclog.New(&hclog.LoggerOptions{Name: "amux", Level: hclog.Debug, Output: printable.NewWriter(s.app.IO.Err)})
}

// registry finds the plugins as the host does.
func (s *session) registry(alwaysVerify bool) (*registry.Registry, error) {
	o, err := s.hostOptions()
	if err != nil {
		return nil, err
	}
	return registry.New(registry.Options{
		ConfigDir: o.ConfigDir, PluginDir: s.getenv("AMUX_PLUGIN_DIR"), ProjectDir: o.ProjectDir,
		BundledDir: o.BundledDir, BundledHashes: o.BundledHashes, Overrides: o.Plugins,
		AlwaysVerify: alwaysVerify || o.AlwaysVerify, Version: o.Version,
	}), nil
}

// programName is a program of amux's own as its file is called.
func programName(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// theHost makes the host at the first call.
func (s *session) theHost() (Host, error) { return s.hostBy(s.hostOptions) }

// runsHost is theHost for commands about runs that exist. They do without a config.toml
// that cannot be read: a run can be listed and stopped whatever stands there.
func (s *session) runsHost() (Host, error) {
	return s.hostBy(func() (host.Options, error) {
		set, err := s.knownSettings()
		if err != nil {
			return host.Options{}, err
		}
		return s.optionsOf(set)
	})
}

func (s *session) hostBy(options func() (host.Options, error)) (Host, error) {
	if s.host == nil {
		o, err := options()
		if err != nil {
			return nil, err
		}
		if s.host, err = s.app.NewHost(o); err != nil {
			s.host = nil
			return nil, err
		}
	}
	return s.host, nil
}

// closeTime is how long the end of amux waits for its runs to end by themselves.
const closeTime = 10 * time.Second

func (s *session) close() {
	if s.host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = s.host.Close(ctx) // what it says is that time is up; it killed then
}
