package agents

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// NewCmdMCP makes amux agents mcp.
func NewCmdMCP(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use: "mcp", Short: "List, add, remove the agent's own MCP servers",
		Long: `List, add and remove MCP servers in the agent's own settings. The agent uses them in
every session, without amux too. For one run only: amux run AGENT --mcp NAME=COMMAND.`,
	}, newCmdMCPList(a), newCmdMCPAdd(a), newCmdMCPRemove(a))
}

// mcpJSON is an MCP server in --json. Values of variables and headers are never in it.
type mcpJSON struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport,omitempty"`
	Command   string   `json:"command,omitempty"`
	Args      []string `json:"args,omitempty"`
	URL       string   `json:"url,omitempty"`
	Env       []string `json:"env,omitempty"`
	Headers   []string `json:"headers,omitempty"`
	Enabled   bool     `json:"enabled"`
	Scope     string   `json:"scope"`
	Path      string   `json:"path"`
}

func newCmdMCPList(a *app.App) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list AGENT",
		Short: "List the agent's own MCP servers",
		Long: `List the MCP servers in the agent's own settings: those of the user, and those of this
folder. Of variables and headers only the names are shown. The agent is not started, so
that servers of its plugins are not listed.`,
		Example:           "  amux agents mcp list claude\n  amux agents mcp list codex --json | jq -r '.[].name'",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			return listMCP(a, args[0], asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listMCP(a *app.App, agent string, asJSON bool) error {
	h, err := a.Opener.Host()
	if err != nil {
		return err
	}
	list, err := h.Own(agent).MCPServers(context.Background())
	if err != nil {
		return err
	}
	servers := []mcpJSON{} // [] in JSON
	for _, s := range list {
		servers = append(servers, mcpJSON{s.Name, s.Transport, s.Command, s.Args, s.URL, s.Env, s.Headers, s.Enabled, s.Scope, s.Path})
	}
	switch {
	case asJSON:
		return a.Print.JSON(servers)
	case len(servers) == 0:
		a.Print.Notef("%s has no MCP servers in its settings", agent)
		return nil
	}
	rows := [][]string{{"SERVER", "SCOPE", "", "TRANSPORT", "COMMAND OR ADDRESS", "ENV AND HEADERS"}}
	for _, s := range servers {
		state := "enabled"
		if !s.Enabled {
			state = "disabled"
		}
		where := strings.Join(append([]string{s.Command}, s.Args...), " ")
		if s.Command == "" {
			where = s.URL
		}
		rows = append(rows, []string{
			render.String(s.Name), render.String(s.Scope), state, render.Dash(s.Transport), render.Dash(where), render.Dash(strings.Join(append(s.Env, s.Headers...), " ")),
		})
	}
	a.Print.Table(rows)
	return nil
}

// mcpOptions are what amux agents mcp add needs.
type mcpOptions struct {
	Scope, Transport, Values string
	Env, Headers             []string
}

func newCmdMCPAdd(a *app.App) *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use:   "add AGENT NAME (ADDRESS | -- COMMAND [ARG...])",
		Short: "Add an MCP server to the agent's settings",
		Long: `Add an MCP server to the agent's own settings: a command, behind --, or an address. The
rest of the file stays as it is, with its comments. Values of variables and headers are
not given on the command line, where other programs see them: --env and --header name a
variable of amux's environment, or of what --values reads. The agent's file holds them.`,
		Example: "  amux agents mcp add claude files -- npx -y @acme/files-server /srv\n" +
			"  amux agents mcp add codex tracker https://mcp.example.com --header Authorization=TRACKER_AUTH\n" +
			"  amux agents mcp add gemini acme --env ACME_KEY --values ~/acme.env -- acme-mcp",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return app.ExactArgs("an agent", "a name", "a command or an address")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			return addMCP(cmd.Context(), a, &o, args[0], args[1], args[2:])
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Scope, "scope", host.ScopeUser, "whose settings: `user`, project, or a scope of the agent's own")
	flags.StringVar(&o.Transport, "transport", "", "`http` or sse, for an address (default http)")
	app.AddRepeated(flags, &o.Env, "env", "", "give the server the variable `NAME`, or NAME=OTHER for the value of another (repeatable)")
	app.AddRepeated(flags, &o.Headers, "header", "", "send the header `NAME=VARIABLE` with the value of a variable (repeatable)")
	flags.StringVar(&o.Values, "values", "", "read lines NAME=VALUE from `FILE`, - for stdin: values that come before the environment")
	return cmd
}

func addMCP(ctx context.Context, a *app.App, o *mcpOptions, agent, name string, words []string) error {
	server := host.MCPServer{Name: name, Transport: "stdio", Command: words[0], Args: words[1:]}
	if u, err := url.Parse(words[0]); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		if len(words) > 1 {
			return app.Usagef("an address takes no argument %q", words[1])
		}
		server = host.MCPServer{Name: name, Transport: "http", URL: words[0]}
	}
	switch {
	case o.Transport != "" && o.Transport != "http" && o.Transport != "sse":
		return app.Usagef("invalid --transport %q: expected http or sse", o.Transport)
	case server.URL == "" && o.Transport != "":
		return app.Usagef("--transport %s needs an address: %q is a command", o.Transport, words[0])
	case server.URL == "" && len(o.Headers) > 0:
		return app.Usagef("--header needs an address: %q is a command", words[0])
	case server.URL != "" && len(o.Env) > 0:
		return app.Usagef("--env needs a command: %q is an address", words[0])
	case o.Transport != "":
		server.Transport = o.Transport
	}
	values, err := o.values(a)
	if err != nil {
		return err
	}
	if server.Env, err = lookUp(a, "--env", o.Env, values); err != nil {
		return err
	}
	if server.Headers, err = lookUp(a, "--header", o.Headers, values); err != nil {
		return err
	}
	h, err := a.Opener.Host()
	if err != nil {
		return err
	}
	path, err := h.Own(agent).AddMCPServer(ctx, o.Scope, server)
	if err != nil {
		return err
	}
	a.Print.Notef("added %s to %s", name, path)
	return nil
}

// values are what --values reads.
func (o *mcpOptions) values(a *app.App) (map[string]string, error) {
	var text []byte
	var err error
	switch o.Values {
	case "":
		return nil, nil
	case "-":
		text, err = foreign.ReadStream(a.Process.IO.In, app.MaxConfigFile)
	default:
		text, err = foreign.Read(a.Process.Abs(o.Values), foreign.Rule{Limit: app.MaxConfigFile, Private: true})
	}
	if err != nil {
		return nil, app.Usagef("cannot read --values %s: %v", o.Values, err).WithHint("%s", foreign.Fix(err))
	}
	values := map[string]string{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		line := strings.TrimSuffix(string(line), "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" { // the line may be a secret
			return nil, app.Usagef("line %d of --values %s is not NAME=VALUE", i+1, o.Values)
		}
		values[name] = value
	}
	return values, nil
}

// lookUp finds the values of variables. Errors name no value: a person may have typed one.
func lookUp(a *app.App, flag string, named []string, values map[string]string) (map[string]string, error) {
	found := map[string]string{}
	for _, text := range named {
		name, variable, ok := strings.Cut(text, "=")
		if !ok {
			variable = name
		}
		value, has := values[variable]
		if !has {
			value = a.Process.Getenv(variable)
		}
		switch {
		case name == "" || !ok && flag == "--header":
			return nil, app.Usagef("invalid %s: expected NAME=VARIABLE", flag)
		case value == "":
			return nil, app.Usagef("%s %s: the variable for its value is not set", flag, name).
				WithHint("set it in the environment, or give it to --values; values do not stand on the command line")
		case strings.ContainsAny(value, "\x00\r\n") && flag == "--header":
			return nil, app.Usagef("%s %s: its value has several lines", flag, name)
		}
		found[name] = value
	}
	return found, nil
}

func newCmdMCPRemove(a *app.App) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use: "remove AGENT NAME", Aliases: []string{"rm"},
		Short: "Remove an MCP server from the agent's settings",
		Long: `Remove an MCP server from the agent's own settings. The rest of the file stays as it is.
--scope is needed where several have one of that name.`,
		Example:           "  amux agents mcp remove claude files\n  amux agents mcp remove gemini acme --scope project",
		Args:              app.ExactArgs("an agent", "a name"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			h, err := a.Opener.Host()
			if err != nil {
				return err
			}
			path, err := h.Own(args[0]).RemoveMCPServer(cmd.Context(), scope, args[1])
			if err != nil {
				return err
			}
			a.Print.Notef("removed %s from %s", args[1], path)
			return nil
		}),
	}
	cmd.Flags().StringVar(&scope, "scope", "", "whose settings: `user`, project, or a scope of the agent's own")
	return cmd
}
