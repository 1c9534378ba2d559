// Package agents has the commands about agents and their CLIs: one command a file.
package agents

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Rest are the commands that only amux-api links.
func Rest(a *app.App) []*cobra.Command {
	return []*cobra.Command{NewCmdSearch(a), NewCmdAdd(a), NewCmdRemove(a), NewCmdModels(a), NewCmdPlugins(a), NewCmdMCP(a), NewCmdSkills(a), NewCmdAuth(a), NewCmdInstall(a), NewCmdUpdate(a)}
}

// handedOver are what stands in amux for Rest.
func handedOver(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		a.HandedOver("search [WORD…]", "Search an ACP registry for agents"),
		a.HandedOver("add acp:ID", "Add an agent from an ACP registry"),
		a.HandedOver("remove AGENT", "Remove an agent that was added from a registry", "rm"),
		a.HandedOver("models AGENT", "List an agent's models"),
		a.HandedOver("plugins", "List, install, remove the agent's own extensions", "plugin", "extensions"),
		a.HandedOver("mcp", "List, add, remove the agent's own MCP servers"),
		a.HandedOver("skills", "List, install, remove the agent's own skills", "skill"),
		a.HandedOver("auth AGENT", "Check whether you are signed in to an agent"),
		a.HandedOver("install AGENT", "Install an agent's CLI"),
		a.HandedOver("update AGENT", "Update an agent's CLI to the tested version"),
	}
}

// NewCmd makes amux agents. rest makes the commands that only amux-api links; nil hands
// their command lines over to it.
func NewCmd(a *app.App, rest func(*app.App) []*cobra.Command) *cobra.Command {
	if rest == nil {
		rest = handedOver
	}
	cmd := app.Group(&cobra.Command{
		Use: "agents", Aliases: []string{"agent"}, Short: "List agents, install them, check sign-in",
		Long: "List the agents that amux can run, see what they can do, install their CLIs, and check\nwhether you are signed in.",
	}, NewCmdList(a), NewCmdInfo(a))
	cmd.AddCommand(rest(a)...)
	return cmd
}

// working returns an agent; an error if its plugin is broken.
func working(h app.Agents, name string) (host.AgentInfo, error) {
	a, err := h.Agent(context.Background(), name)
	if err == nil {
		err = a.Err
	}
	return a, err
}

// agentJSON is an agent in --json.
type agentJSON struct {
	Agent         string         `json:"agent"`
	DisplayName   string         `json:"display_name,omitempty"`
	Summary       string         `json:"summary,omitempty"`
	Plugin        string         `json:"plugin"`
	PluginVersion string         `json:"plugin_version,omitempty"`
	Trust         string         `json:"trust,omitempty"`
	PlatformOK    bool           `json:"platform_ok"`
	Installed     bool           `json:"installed"`
	Program       string         `json:"program,omitempty"`
	Version       string         `json:"version,omitempty"` // of the CLI, if it is known
	SignedIn      bool           `json:"signed_in"`
	Auth          []authJSON     `json:"auth"`
	Unproven      bool           `json:"unproven,omitempty"`
	Demo          bool           `json:"demo,omitempty"`
	Origin        *originJSON    `json:"origin,omitempty"` // of an agent added from a registry
	Error         *app.ErrorJSON `json:"error,omitempty"`
}

type authJSON struct {
	Provider string     `json:"provider"`
	Status   string     `json:"status"`
	Method   string     `json:"method,omitempty"`
	Found    string     `json:"found,omitempty"`
	Identity string     `json:"identity,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`
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
		SignedIn: a.SignedIn, Auth: jsonOfAuth(a.Auth), Unproven: d.GetUnproven(), Demo: d.GetDemo(), Error: app.JSONError(a.Err),
	}
}
