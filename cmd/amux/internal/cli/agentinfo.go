package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// printAgentJSON prints what is known of an agent, and all that its description
// says.
func (s *session) printAgentJSON(a host.AgentInfo) error {
	description, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(a.Description)
	if err != nil {
		return err
	}
	return s.printJSON(struct {
		agentJSON
		Description json.RawMessage `json:"description"`
	}{jsonOfAgent(a), description})
}

// printAgent prints an agent for people.
func (s *session) printAgent(a host.AgentInfo) {
	d := a.Description
	out := s.app.IO.Out
	s.outf("%s: %s\n", d.Id, d.Summary)
	rows := [][]string{}
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{"  " + what, render.String(text)})
		}
	}
	add("name", d.DisplayName)
	if a.Launch != nil {
		add("command", cmp.Or(a.Launch.Line, strings.Join(a.Launch.Argv, " "))+", by the adapter "+a.Launch.Adapter)
	}
	add("plugin", strings.TrimSpace(a.Plugin+" "+a.PluginVersion)+", "+a.Trust)
	installed := installedWord(a)
	if a.Program != "" {
		installed += ", " + a.Program
	}
	add("installed", installed)
	add("signed in", signedInWord(a))
	add("versions", versionsText(d.Versions))
	add("platforms", strings.Join(d.Platforms, ", "))
	if d.Unproven {
		add("unproven", "its CLI could not be had for tests")
	}
	add("can", strings.Join(capabilities(d.Capabilities), ", "))
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
	for _, install := range d.Installs {
		add("install", installText(install))
	}
	for _, probe := range d.AuthProbes {
		add("sign in", probe.Meaning)
	}
	if !a.SignedIn {
		for _, line := range d.AuthGuidance {
			add("to sign in", line)
		}
	}
	table(out, rows)
	for _, note := range d.Notes {
		fmt.Fprintln(out)
		wrap(out, render.String(note), s.app.IO.Width)
	}
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

func installText(i *pluginapi.Install) string {
	text := strings.Join(i.Argv, " ")
	if i.Note != "" {
		text = strings.TrimSpace(text + "  " + i.Note)
	}
	if len(i.Platforms) > 0 {
		here := false
		for _, p := range i.Platforms {
			here = here || p == runtime.GOOS || p == runtime.GOOS+"/"+runtime.GOARCH
		}
		if !here {
			return ""
		}
	}
	return text
}

// capabilities names those that an agent has, in the order of the protocol.
func capabilities(c *pluginapi.Capabilities) []string {
	var names []string
	if c == nil {
		return nil
	}
	m := c.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Kind() == protoreflect.BoolKind && m.Get(field).Bool() {
			names = append(names, strings.ReplaceAll(string(field.Name()), "_", " "))
		}
	}
	return names
}

// wrap writes a paragraph in lines of at most width columns.
func wrap(w io.Writer, text string, width int) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && render.Columns(line)+1+render.Columns(word) > width {
			fmt.Fprintln(w, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}
