package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// lister knows the agents.
type lister interface {
	Agents(ctx context.Context) ([]host.AgentInfo, error)
	Agent(ctx context.Context, name string) (host.AgentInfo, error)
	DetectAuth(ctx context.Context, name string) (*pluginapi.AuthResponse, error)
	AgentPlugins(ctx context.Context, name string) ([]*pluginapi.AgentPlugin, error)
	AgentModels(ctx context.Context, name string) ([]*pluginapi.Model, error)
}

func newAgents(s *session) *cobra.Command {
	return group("agents", "See which agents there are, and whether they are ready",
		newAgentsList(s), newAgentsInfo(s), newAgentsModels(s), newAgentsPlugins(s), newAgentsAuth(s), newAgentsInstall(s), newAgentsUpdate(s))
}

// agentJSON is an agent in --json.
type agentJSON struct {
	Agent         string     `json:"agent"`
	DisplayName   string     `json:"display_name,omitempty"`
	Summary       string     `json:"summary,omitempty"`
	Plugin        string     `json:"plugin"`
	PluginVersion string     `json:"plugin_version,omitempty"`
	Trust         string     `json:"trust,omitempty"`
	PlatformOK    bool       `json:"platform_ok"`
	Installed     bool       `json:"installed"`
	Program       string     `json:"program,omitempty"`
	Version       string     `json:"version,omitempty"` // of the CLI, if it is known
	SignedIn      bool       `json:"signed_in"`
	Auth          []authJSON `json:"auth"`
	Unproven      bool       `json:"unproven,omitempty"`
	Demo          bool       `json:"demo,omitempty"`
	Error         *errorJSON `json:"error,omitempty"`
}

type authJSON struct {
	Provider string     `json:"provider"`
	Status   string     `json:"status"`
	Method   string     `json:"method,omitempty"`
	Found    string     `json:"found,omitempty"`
	Identity string     `json:"identity,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`
}

type errorJSON struct {
	Code    pluginapi.Code `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
}

func jsonOfError(err error) *errorJSON {
	e := pluginapi.AsError(err)
	if e == nil {
		return nil
	}
	hint := e.Hint
	if hint == "" {
		hint = e.Code.Info().Hint
	}
	return &errorJSON{e.Code, e.Error(), hint}
}

func jsonOfAuth(states []*pluginapi.AuthState) []authJSON {
	list := []authJSON{}
	for _, state := range states {
		a := authJSON{Provider: state.Provider, Status: state.Status, Method: state.Method, Found: state.Found, Identity: state.Identity}
		if state.ExpiresUnixMs != 0 {
			expires := time.UnixMilli(state.ExpiresUnixMs).UTC()
			a.Expires = &expires
		}
		list = append(list, a)
	}
	return list
}

func jsonOfAgent(a host.AgentInfo) agentJSON {
	d := a.Description
	return agentJSON{
		Agent: d.GetId(), DisplayName: d.GetDisplayName(), Summary: d.GetSummary(),
		Plugin: a.Plugin, PluginVersion: a.PluginVersion, Trust: a.Trust,
		PlatformOK: a.PlatformOK, Installed: a.Installed, Program: a.Program, Version: a.Version,
		SignedIn: a.SignedIn, Auth: jsonOfAuth(a.Auth), Unproven: d.GetUnproven(), Demo: d.GetDemo(), Error: jsonOfError(a.Err),
	}
}

// printJSON prints one JSON document.
func (s *session) printJSON(v any) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := s.app.IO.Out.Write(printable.JSON(data.Bytes()))
	return err
}

func newAgentsList(s *session) *cobra.Command {
	var asJSON, refresh bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all agents; starts nothing",
		Long: `List all agents. It starts nothing: the version of an agent's CLI is the one that it
told last, for as long as its file is the same. --refresh asks all of them again.`,
		Args: exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			agents, err := h.Agents(context.Background())
			if err != nil {
				return err
			}
			if refresh {
				for i, a := range agents {
					if a.Err == nil && a.Installed {
						if agents[i], err = h.Refresh(context.Background(), a.Description.GetId()); err != nil {
							return err
						}
					}
				}
			}
			if asJSON {
				list := []agentJSON{}
				for _, a := range agents {
					list = append(list, jsonOfAgent(a))
				}
				return s.printJSON(list)
			}
			rows := [][]string{{"AGENT", "INSTALLED", "AUTH", "PLUGIN", "TRUST", ""}}
			for _, a := range agents {
				rows = append(rows, agentRow(a))
			}
			table(s.app.IO.Out, rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&refresh, "refresh", false, "ask the installed CLIs for their versions")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func agentRow(a host.AgentInfo) []string {
	plugin := strings.TrimSpace(a.Plugin + " " + a.PluginVersion)
	if a.Err != nil {
		return []string{a.Description.GetId(), "-", "-", plugin, a.Trust, "broken: " + render.String(a.Err.Error())}
	}
	var notes []string
	if a.Description.GetUnproven() {
		notes = append(notes, "unproven")
	}
	if a.Description.GetDemo() {
		notes = append(notes, "demo")
	}
	return []string{a.Description.GetId(), installedWord(a), signedInWord(a), plugin, a.Trust, strings.Join(notes, ", ")}
}

func installedWord(a host.AgentInfo) string {
	switch {
	case !a.PlatformOK:
		return "no build for this platform"
	case !a.Installed:
		return "no"
	case a.Version != "":
		return a.Version
	}
	return "yes"
}

func signedInWord(a host.AgentInfo) string {
	switch {
	case len(a.Auth) == 0:
		return "not needed"
	case a.SignedIn:
		return "yes"
	}
	for _, state := range a.Auth {
		if state.Status == "expired" || state.Status == "unknown" {
			return state.Status
		}
	}
	return "no"
}

func newAgentsInfo(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "info AGENT",
		Short:             "Say what an agent can do and how to get it; starts nothing",
		Args:              exactly("an agent"),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			a, err := h.Agent(context.Background(), args[0])
			if err == nil {
				err = a.Err
			}
			if err != nil {
				return err
			}
			if asJSON {
				return s.printAgentJSON(a)
			}
			s.printAgent(a)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) completeAgent(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.agentNames(), cobra.ShellCompDirectiveNoFileComp
}

func newAgentsAuth(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "auth AGENT",
		Short:             "Say whether you are signed in to an agent, by which way",
		Long:              "Say whether you are signed in to an agent, by which way. It asks the adapter, looks\nat local files and variables only, and shows no secret. The exit code is 5 if you\nare not signed in.",
		Args:              exactly("an agent"),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			response, err := h.DetectAuth(context.Background(), args[0])
			if err != nil {
				return err
			}
			return s.printAuth(args[0], response, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) printAuth(agent string, response *pluginapi.AuthResponse, asJSON bool) error {
	signedIn := len(response.States) == 0
	for _, state := range response.States {
		signedIn = signedIn || state.Status == "authenticated" || state.Status == "unknown"
	}
	var err error
	if !signedIn {
		err = exitError(pluginapi.CodeAuth.Info().Exit)
	}
	if asJSON {
		if err := s.printJSON(map[string]any{
			"agent": agent, "signed_in": signedIn, "states": jsonOfAuth(response.States), "guidance": response.Guidance,
		}); err != nil {
			return err
		}
		return err
	}
	out := s.app.IO.Out
	if len(response.States) == 0 {
		s.outf("%s needs no sign-in\n", agent)
		return nil
	}
	rows := [][]string{{"PROVIDER", "STATUS", "METHOD", "FOUND", "IDENTITY", "EXPIRES"}}
	for _, a := range jsonOfAuth(response.States) {
		expires := ""
		if a.Expires != nil {
			expires = a.Expires.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{a.Provider, a.Status, a.Method, render.String(a.Found), render.String(a.Identity), expires})
	}
	table(out, rows)
	if !signedIn {
		for _, line := range response.Guidance {
			s.errf("hint: %s", line)
		}
	}
	return err
}
