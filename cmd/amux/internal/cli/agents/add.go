package agents

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host/install/acp"
	"github.com/amux-dev/amux/pluginapi"
)

// AddOptions are what amux agents add needs.
type AddOptions struct {
	*app.App

	Registry string
	As       string
	Method   string
	Update   bool
	Scripts  bool
	DryRun   bool
	JSON     bool
}

// NewCmdAdd makes amux agents add.
func NewCmdAdd(a *app.App) *cobra.Command {
	o := &AddOptions{App: a}
	cmd := &cobra.Command{
		Use:   "add acp:ID",
		Short: "Add an agent from an ACP registry",
		Long: `Add an agent that an ACP registry lists, and that speaks the Agent Client Protocol. amux
installs it into the configuration folder: an npm package with npm, a Python package with
uv or python3, or an archive. Then amux run ID runs it.

The version and its hashes are pinned in agents/lock.json. To add the agent again keeps
them: amux installs what is missing, and refuses what has changed. --update takes what the
registry has now.

Install scripts of packages do not run, unless you say --scripts. The agent itself has
your rights, like any program that you install.`,
		Example: `  amux agents add acp:cline
  amux agents add acp:gemini --as gemini-acp
  amux agents add acp:cline --update
  amux agents add acp:ours --registry ./registry.json`,
		Args: app.ExactArgs("an agent of a registry"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			return a.Interruptible(func(ctx context.Context) error { return o.add(ctx, args[0]) })
		}),
	}
	f := cmd.Flags()
	addRegistryFlag(cmd, &o.Registry)
	f.StringVar(&o.As, "as", "", "`NAME` of the agent in amux (default: its id)")
	f.StringVar(&o.Method, "method", "", "`WAY` to install: binary, npx or uvx (default: the first that this machine can)")
	f.BoolVar(&o.Update, "update", false, "take the version that the registry has now")
	f.BoolVar(&o.Scripts, "scripts", false, "let the packages' install scripts run")
	f.BoolVar(&o.DryRun, "dry-run", false, "print what would be installed")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func addRegistryFlag(cmd *cobra.Command, registry *string) {
	cmd.Flags().StringVar(registry, "registry", "", "`URL` (https) or file of the registry (default: "+acp.Official+")")
}

// store is where the agents of registries are kept.
func store(a *app.App) (*acp.Store, error) {
	if _, err := a.Config.SafeDir(); err != nil {
		return nil, err
	}
	dir, err := a.Config.AddedDir()
	if err != nil {
		return nil, err
	}
	return acp.New(acp.Options{Dir: dir, Env: a.Env, Version: a.Version, Note: a.Print.Notef}), nil
}

// source is the registry that a flag names, with an absolute path.
func source(a *app.App, registry string) string {
	if registry == "" || strings.Contains(registry, "://") {
		return registry
	}
	return filepath.Clean(a.Abs(registry))
}

func (o *AddOptions) add(ctx context.Context, text string) error {
	id, ok := strings.CutPrefix(text, "acp:")
	if !ok {
		return app.Usagef("invalid agent %q: expected acp:ID", text).
			WithHint("amux agents search lists the agents of the registry; amux agents install AGENT installs the CLI of one that amux has")
	}
	s, err := store(o.App)
	if err != nil {
		return err
	}
	added, err := acp.Read(s.Dir)
	if err != nil {
		return err
	}
	name := cmp.Or(o.As, id)
	current, pinned := acp.Find(added, name)
	if err := o.checkName(ctx, name, id, pinned); err != nil {
		return err
	}
	registry, err := s.Load(ctx, cmp.Or(source(o.App, o.Registry), current.Registry, acp.Official))
	if err != nil {
		return err
	}
	got, err := s.Add(ctx, acp.Request{
		Registry: registry, ID: id, Name: name, Method: o.Method, Update: o.Update, Scripts: o.Scripts, DryRun: o.DryRun,
	})
	if err != nil {
		return err
	}
	if o.JSON {
		return o.Print.JSON(struct {
			Agent     string `json:"agent"`
			Previous  string `json:"previous,omitempty"`
			Newer     string `json:"newer,omitempty"`
			Unchanged bool   `json:"unchanged,omitempty"`
			DryRun    bool   `json:"dry_run,omitempty"`
			*originJSON
		}{got.Name, got.Previous, got.Newer, got.Unchanged, o.DryRun, jsonOfOrigin(got.Installed)})
	}
	what := got.Name + " " + got.Version + " (" + render.String(got.What()) + ")"
	switch {
	case got.Unchanged:
		o.Print.Notef("%s is installed", what)
	case o.DryRun:
		o.Print.Notef("would install %s with %s", what, got.Way.Method)
	default:
		o.Print.Notef("installed %s, pinned to %s", what, render.String(got.Integrity))
		o.Print.Notef("try it: amux run %s \"…\"", got.Name)
	}
	if got.Newer != "" {
		o.Print.Notef("hint: the registry has version %s: amux agents update %s", got.Newer, got.Name)
	}
	return nil
}

// checkName refuses the name of an agent that comes from elsewhere.
func (o *AddOptions) checkName(ctx context.Context, name, id string, pinned bool) error {
	if !acp.ValidName(name) {
		return app.Usagef("invalid name %q: expected lower-case letters, digits and hyphens, 40 at most", name)
	}
	set, err := o.Config.User()
	if err != nil {
		return err
	}
	taken := func(by string) error {
		return pluginapi.Errorf(pluginapi.CodeConfig, "there is an agent %s already: %s", name, by).
			WithHint("give this one another name: amux agents add acp:%s --as %s-acp", id, name)
	}
	if _, own := set.Agents[name]; own {
		return taken("[agents." + name + "] of config.toml")
	}
	if pinned {
		return nil
	}
	h, err := o.Opener.Host()
	if err != nil {
		return err
	}
	switch a, err := h.Agent(ctx, name); {
	case errors.Is(err, pluginapi.CodeAgentNotFound):
		return nil
	case err == nil:
		return taken("that of plugin " + a.Plugin)
	default:
		return taken(pluginapi.AsError(err).Msg)
	}
}
