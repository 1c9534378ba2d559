package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install/acp"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// InfoOptions are what amux agents info needs.
type InfoOptions struct {
	IO    *iostreams.IO
	Print *app.Printer
	Host  func() (app.Host, error)

	Added func() ([]acp.Installed, error)

	Agent string
	JSON  bool
}

// NewCmdInfo makes amux agents info.
func NewCmdInfo(a *app.App) *cobra.Command {
	o := &InfoOptions{IO: a.IO, Print: a.Print, Host: a.Opener.Host, Added: a.Config.Added}
	cmd := &cobra.Command{
		Use:   "info AGENT",
		Short: "Show what an agent can do",
		Long: `Show what an agent can do, how to install it and how to sign in, which models and
effort levels it has, and where it keeps its settings. This starts nothing.`,
		Example:           "  amux agents info claude\n  amux agents info codex --json | jq .description.capabilities",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Agent = args[0]
			return info(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func info(o *InfoOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	a, err := working(h, o.Agent)
	if err != nil {
		return err
	}
	added, _ := o.Added() // opening the host has warned
	if o.JSON {
		return printJSON(o.Print, a, added)
	}
	printAgent(o, a, added)
	return nil
}

// printJSON prints what is known of an agent, and its whole description.
func printJSON(p *app.Printer, a host.AgentInfo, added []acp.Installed) error {
	description, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(a.Description)
	if err != nil {
		return err
	}
	return p.JSON(struct {
		agentJSON
		Description json.RawMessage `json:"description"`
	}{withOrigin(jsonOfAgent(a), added, a), description})
}

// printAgent prints an agent for people.
func printAgent(o *InfoOptions, a host.AgentInfo, added []acp.Installed) {
	d := a.Description
	o.Print.Outf("%s: %s\n", d.Id, d.Summary)
	rows := [][]string{}
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{"  " + what, render.String(text)})
		}
	}
	add("name", d.DisplayName)
	if a.Launch != nil {
		add("command", cmp.Or(a.Launch.Line, strings.Join(a.Launch.Argv, " "))+", served by the adapter "+a.Launch.Adapter)
	}
	if from, ok := originOf(added, a); ok {
		add("origin", "acp:"+from.ID+" "+from.Version+" from "+from.Registry)
		add("package", from.What()+", "+from.Integrity)
	}
	add("plugin", strings.TrimSpace(a.Plugin+" "+a.PluginVersion)+", "+a.Trust)
	installed := render.Installed(a)
	if a.Program != "" {
		installed += ", " + a.Program
	}
	add("installed", installed)
	add("signed in", render.SignedIn(a))
	add("versions", versionsText(d.Versions))
	add("platforms", strings.Join(d.Platforms, ", "))
	if d.Unproven {
		add("unproven", "not tested with its real CLI")
	}
	add("can", strings.Join(render.Capabilities(d.Capabilities), ", "))
	add("reports", reports(d))
	var efforts, models []string
	for _, e := range d.Efforts {
		if e.Native == e.Level || e.Native == "" {
			efforts = append(efforts, e.Level)
		} else {
			efforts = append(efforts, e.Level+" ("+e.Native+")")
		}
	}
	for _, m := range d.Models {
		name := m.Id
		if len(m.Aliases) > 0 {
			name += " (" + strings.Join(m.Aliases, ", ") + ")"
		}
		if m.IsDefault {
			name += " by default"
		}
		models = append(models, name)
	}
	add("models", strings.Join(models, ", "))
	add("efforts", strings.Join(efforts, ", "))
	add("drivers", strings.Join(d.Drivers, ", "))
	add("sessions", strings.Join(d.SessionLocations, ", "))
	add("settings", strings.Join(d.ConfigLocations, ", "))
	add("mcp servers", places(d.McpFiles))
	add("skills", places(d.SkillFolders))
	add("in a sandbox", strings.Join(d.HomePaths, ", "))
	for _, install := range d.Installs {
		add("install", render.InstallCommand(install))
	}
	for _, probe := range d.AuthProbes {
		add("sign in", probe.Meaning)
	}
	if !a.SignedIn {
		for _, line := range d.AuthGuidance {
			add("to sign in", line)
		}
	}
	o.Print.Table(rows)
	for _, note := range d.Notes {
		fmt.Fprintln(o.IO.Out)
		render.Wrap(o.IO.Out, render.String(note), o.IO.Width)
	}
}

// places are the files or folders that amux agents mcp and skills change, by scope.
func places(list []*pluginapi.Location) string {
	var texts []string
	for _, l := range list {
		texts = append(texts, l.Path+" ("+l.Scope+")")
	}
	return strings.Join(texts, ", ")
}

// reports says in which currencies a budget can be kept.
func reports(d *pluginapi.Agent) string {
	var what []string
	if slices.Contains(d.EventTypes, code.EventTokenUsage) {
		what = append(what, "its tokens (--max-tokens)")
	}
	if slices.Contains(d.EventTypes, code.EventCost) {
		what = append(what, "what it costs (--max-cost)")
	}
	return strings.Join(what, ", ")
}

func versionsText(v *pluginapi.Versions) string {
	var parts []string
	if v.GetMinimum() != "" {
		parts = append(parts, v.GetMinimum()+" or later")
	}
	if v.GetTested() != "" {
		parts = append(parts, "tested with "+v.GetTested())
	}
	return strings.Join(parts, ", ")
}
