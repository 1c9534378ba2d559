package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/pluginapi"
)

func newPlugin(s *session) *cobra.Command {
	cmd := group("plugin", "Install, check and remove the plugins that know the agents",
		newPluginInstall(s),
		newPluginList(s),
		newPluginInfo(s),
		newPluginVerify(s),
		newPluginUpgrade(s),
		newPluginRemove(s),
		newPluginLock(s),
		newPluginTrust(s),
		newPluginMirror(s),
		newPluginPrune(s),
		newPluginNew(s),
		newPluginDev(s),
		newPluginRecord(s),
		newPluginTest(s),
		newPluginPackage(s),
		newPluginSign(s),
	)
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return host.CheckSystem() }
	return cmd
}

// pluginDir is where plugins are installed.
func (s *session) pluginDir() (string, error) {
	if dir := s.getenv("AMUX_PLUGIN_DIR"); dir != "" {
		return s.abs(dir), nil
	}
	dir, err := s.configDir()
	return filepath.Join(dir, "plugins"), err
}

// installer makes the one that changes the user's plugins. mirror, if not empty,
// takes the place of sources.toml.
func (s *session) installer(mirror string) (*install.Installer, error) {
	dir, err := s.pluginDir()
	if err != nil {
		return nil, err
	}
	config, err := s.safeConfigDir()
	if err != nil {
		return nil, err
	}
	if err := safeFolder("plugin folder", dir, "choose another by AMUX_PLUGIN_DIR"); err != nil {
		return nil, err
	}
	supervision, err := host.Supervision(true)
	if err != nil {
		return nil, err
	}
	o := install.Options{Dir: dir, Supervision: supervision, Gone: func(hash string) { s.gone = append(s.gone, hash) }, BundledDir: s.beside("plugins"), Version: s.app.Version, GitHubAPI: s.getenv("GITHUB_API_URL"), GitHubToken: s.getenv("GH_TOKEN")}
	if o.GitHubToken == "" {
		o.GitHubToken = s.getenv("GITHUB_TOKEN")
	}
	if mirror != "" {
		if !install.IsAddress(mirror) {
			mirror = s.abs(mirror)
		}
		if err := install.CheckMirrorRoot(mirror); err != nil {
			return nil, err
		}
		o.Mirrors = []install.Mirror{{Root: mirror}}
	} else if o.Mirrors, err = install.ReadMirrors(filepath.Join(config, install.SourcesName)); err != nil {
		return nil, err
	}
	return install.New(o), nil
}

// removeCopies removes the copies that runs were started from of what has left the
// store. Those that a run uses which goes on stay until amux clean.
func (s *session) removeCopies() error {
	if len(s.gone) == 0 {
		return nil
	}
	r, err := s.registry(false)
	if err != nil {
		return err
	}
	h, err := s.theHost()
	if err != nil {
		return err
	}
	runs, err := h.Runs(context.Background())
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, run := range runs {
		if run.End == nil {
			used[run.PluginHash] = true
		}
	}
	return r.RemoveCopies(s.gone, func(hash string) bool { return used[hash] })
}

// projectLock is the path of the project's lock; empty if there is no project.
func (s *session) projectLock() (string, error) {
	dir, err := s.configDir()
	if err != nil {
		return "", err
	}
	project := s.projectDir(dir)
	if project == "" {
		return "", nil
	}
	return filepath.Join(project, ".agent-mux", "plugins.lock"), nil
}

// interruptible does what a signal gives up, and leaves nothing half done.
func (s *session) interruptible(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sigs, stop := s.app.Signals()
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var caught os.Signal
	for {
		select {
		case err := <-done:
			if caught != nil && errors.Is(err, context.Canceled) {
				s.errf("interrupted")
				return exitError(signalCode(caught))
			}
			return err
		case sig := <-sigs:
			if isSuspend(sig) {
				suspend()
				continue
			}
			caught = sig
			cancel()
		}
	}
}

func (s *session) somebody() bool { return s.app.IO.InTTY && s.app.IO.ErrTTY }

// trustFlags are those of commands that bring in what others have made.
type trustFlags struct {
	require        string
	takeOver       []string
	acceptSigner   bool
	allowDowngrade bool
	noExec         bool
	dryRun         bool
	json           bool
}

func (f *trustFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.require, "require", "", "what must vouch for it: `signature`, checksum or none")
	flags.StringArrayVar(&f.takeOver, "take-over", nil, "let it serve this agent in the place of another plugin, by `ID` (repeatable)")
	flags.BoolVar(&f.acceptSigner, "accept-signer", false, "take another signer than before")
	flags.BoolVar(&f.allowDowngrade, "allow-downgrade", false, "take an older version, or an older index of a mirror")
	flags.BoolVar(&f.noExec, "no-exec", false, "do not run the plugin to compare what it says of itself")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check everything, change nothing")
	flags.BoolVar(&f.json, "json", false, "print JSON")
}

// request makes what an installer is asked of the flags and settings.
func (s *session) request(f *trustFlags) (install.Request, error) {
	set, err := s.userSettings()
	if err != nil {
		return install.Request{}, err
	}
	require := f.require
	if require == "" {
		require = set.Require
	}
	switch install.Require(require) {
	case install.RequireDefault, install.RequireSignature, install.RequireChecksum, install.RequireNone:
	default:
		return install.Request{}, usage("--require %s: want signature, checksum or none", require)
	}
	req := install.Request{
		Require: install.Require(require), TakeOver: f.takeOver, AcceptSigner: f.acceptSigner, AllowDowngrade: f.allowDowngrade, NoExec: f.noExec, DryRun: f.dryRun,
	}
	if s.somebody() && !f.json {
		req.Ask, req.AskTakeOver = s.askTrust, s.askTakeOver
	}
	return req, nil
}

// askTrust shows what a person must compare, and asks.
func (s *session) askTrust(q install.Question) bool {
	s.errf("plugin %s %s from %s", q.Name, q.Version, q.Source)
	s.errf("  sha256 %s", q.SHA256)
	if q.Signer != "" {
		s.errf("  signed by the key %s, which you have not said you trust", q.Signer)
	} else {
		s.errf("  nobody has signed it")
	}
	s.errf("  it will run with your rights")
	return s.confirm("amux: install it?")
}

// askTakeOver asks whether a plugin may answer under the name of another's agent.
func (s *session) askTakeOver(q install.TakeOver) bool {
	kind := "plugin"
	if q.Bundled {
		kind = "bundled plugin"
	}
	s.errf("plugin %s %s declares the agent %s, which the %s %s serves", q.Name, q.Version, q.Agent, kind, q.From)
	return s.confirm(fmt.Sprintf("amux: let %s serve it from now on?", q.Name))
}

// installed says what an installation has done.
func (s *session) installed(r *install.Result, dry bool) {
	for _, w := range r.Warnings {
		s.warnf("%s", w)
	}
	did := "installed"
	switch {
	case r.Unchanged:
		s.errf("%s %s is installed already, %s", r.Name, r.Version, r.Trust)
		return
	case dry:
		did = "would install"
	case strings.HasPrefix(r.Source, "dir:"):
		s.errf("linked %s %s to %s, %s", r.Name, r.Version, r.Dir, r.Trust)
		return
	}
	was := ""
	if r.Previous != "" && r.Previous != r.Version {
		was = " (was " + r.Previous + ")"
	}
	s.errf("%s %s %s%s, %s", did, r.Name, r.Version, was, r.Trust)
}

// each does something for every name, says what goes wrong, and goes on; the exit
// code is that of the first failure.
func (s *session) each(names []string, do func(name string) error) error {
	var failed error
	for _, name := range names {
		err := do(name)
		switch e := pluginapi.AsError(err); {
		case err == nil:
		case errors.Is(err, context.Canceled):
			return err
		case failed == nil && len(names) == 1:
			return err
		default:
			s.say(e, "", "")
			if failed == nil {
				failed = exitError(e.Code.Info().Exit)
			}
		}
	}
	return failed
}

// notInstalled is the error for a plugin that there is none of.
func (s *session) notInstalled(name string, plugins []registry.Plugin) error {
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
	}
	err := pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s is not installed", render.String(name))
	if near := registry.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("see: amux plugin list")
}

// completePlugin completes the names of installed plugins.
func (s *session) completePlugin(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	in, err := s.installer("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	lock, err := install.ReadLock(in.LockFile())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return lock.Names(), cobra.ShellCompDirectiveNoFileComp
}
