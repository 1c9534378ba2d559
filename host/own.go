package host

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/edit"
	"github.com/amux-dev/amux/host/internal/skill"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/authprobe"
)

// The scopes that most agents have. Some have one of their own, as Claude Code's "local".
const (
	ScopeUser    = "user"
	ScopeProject = "project"
)

// Own is what an agent keeps by itself, for all its sessions: plugins, MCP servers and
// skills. What it changes the agent sees also without amux.
type Own struct {
	host *Host
	name string
}

// Own is for what an agent keeps by itself.
func (h *Host) Own(agent string) *Own { return &Own{h, agent} }

// OwnMCPServer is an MCP server that stands in a file of the agent's.
type OwnMCPServer struct {
	Name      string
	Transport string // stdio, sse, http; "" if the file does not say
	Command   string
	Args      []string
	URL       string   // without what may be secret in it
	Env       []string // names
	Headers   []string // names
	Enabled   bool
	Scope     string
	Path      string // of the file
}

// Skill is one that an agent finds in a folder of its own.
type Skill struct {
	Name        string
	Description string
	Scope       string
	Path        string
}

// Plugins lists the agent's own plugins, or extensions, by its own command. It
// starts the plugin of amux, and changes nothing.
func (o *Own) Plugins(ctx context.Context) ([]*pluginapi.AgentPlugin, error) {
	h := o.host
	process, agent, err := h.queries.askable(ctx, o.name, "list plugins", (*pluginapi.Capabilities).GetListPlugins)
	if err != nil {
		return nil, err
	}
	list, err := process.ListPlugins(ctx, &pluginapi.PluginsQuery{Agent: h.catalog.adapter(o.name), Caller: o.caller(agent)}, program.Exec(h.queries.command("")))
	h.plugins.Hangs(ctx, process, err)
	return list, ownFailed(err)
}

// ownFailed gives the way out where the agent's own command failed, without a run whose
// log could say more.
func ownFailed(err error) error {
	if e, ok := errors.AsType[*pluginapi.Error](err); ok && e.Code == pluginapi.CodeAgentFailed && e.Hint == "" {
		return e.WithHint("run that command in a terminal: it may say more, or ask something")
	}
	return err
}

// changeTime is how long the agent's command may take that adds a plugin, which it may
// fetch from afar.
const changeTime = 5 * time.Minute

// AddPlugin has the agent's own command add a plugin. source is what that command takes.
func (o *Own) AddPlugin(ctx context.Context, source string) error {
	return o.changePlugin(ctx, &pluginapi.PluginChange{Add: source})
}

// RemovePlugin has the agent's own command remove one.
func (o *Own) RemovePlugin(ctx context.Context, id string) error {
	return o.changePlugin(ctx, &pluginapi.PluginChange{Remove: id})
}

func (o *Own) changePlugin(ctx context.Context, change *pluginapi.PluginChange) error {
	if word := change.Add + change.Remove; word == "" || strings.HasPrefix(word, "-") || strings.ContainsRune(word, 0) {
		return invalid("%q is neither a source nor the name of a plugin", word)
	}
	h := o.host
	process, agent, err := h.queries.askable(ctx, o.name, "add or remove plugins", (*pluginapi.Capabilities).GetChangePlugins)
	if err != nil {
		return err
	}
	change.Agent, change.Caller = h.catalog.adapter(o.name), o.caller(agent)
	c := h.queries.command("")
	c.Time = changeTime
	err = process.ChangePlugin(ctx, change, program.Exec(c))
	h.plugins.Hangs(ctx, process, err)
	return ownFailed(err)
}

// MCPServers lists the MCP servers that stand in the agent's own files. It starts the
// plugin of amux, not the agent.
func (o *Own) MCPServers(ctx context.Context) ([]OwnMCPServer, error) {
	process, agent, err := o.configurer(ctx)
	if err != nil {
		return nil, err
	}
	var list []OwnMCPServer
	for _, place := range o.places(agent, agent.McpFiles) {
		data, err := o.file(place).Read()
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			continue
		}
		answer, err := o.ask(ctx, process, &pluginapi.McpQuery{File: place, Content: data})
		if err != nil {
			return nil, err
		}
		for _, c := range answer.Servers {
			s := c.GetServer()
			own := OwnMCPServer{
				Name: s.GetName(), Transport: s.GetTransport(), Command: s.GetCommand(), Args: s.GetArgs(), URL: openURL(s.GetUrl()),
				Enabled: !c.GetDisabled(), Scope: place.Scope, Path: place.Path,
			}
			for name := range s.GetEnv() {
				own.Env = append(own.Env, name)
			}
			for name := range s.GetHeaders() {
				own.Headers = append(own.Headers, name)
			}
			slices.Sort(own.Env)
			slices.Sort(own.Headers)
			list = append(list, own)
		}
	}
	return list, nil
}

// openURL is an address without user, query and fragment, in which secrets may stand.
func openURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.Fragment = nil, ""
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

// AddMCPServer adds a server to the agent's file for a scope, and returns its path. One of
// that name there is an error.
func (o *Own) AddMCPServer(ctx context.Context, scope string, server MCPServer) (path string, _ error) {
	process, agent, err := o.configurer(ctx)
	if err != nil {
		return "", err
	}
	places, err := o.scoped(agent, agent.McpFiles, scope)
	if err != nil {
		return "", err
	}
	unlock, err := edit.Lock(ctx, o.host.opts.ConfigDir)
	if err != nil {
		return "", err
	}
	defer unlock()
	chosen := (*pb.Location)(nil)
	for _, place := range places {
		data, err := o.file(place).Read()
		if err != nil {
			return "", err
		}
		if len(data) == 0 {
			continue
		}
		chosen = cmp.Or(chosen, place)
		answer, err := o.ask(ctx, process, &pluginapi.McpQuery{File: place, Content: data})
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(answer.Servers, func(c *pluginapi.ConfiguredMcp) bool { return c.GetServer().GetName() == server.Name }) {
			return "", invalid("%s has a server %q already", place.Path, server.Name).
				WithHint("amux agents mcp remove %s %s --scope %s", o.name, server.Name, scope)
		}
	}
	chosen = cmp.Or(chosen, places[0])
	return chosen.Path, o.file(chosen).Change(func(before []byte) ([]byte, error) {
		answer, err := o.ask(ctx, process, &pluginapi.McpQuery{File: chosen, Content: before, Add: &pluginapi.McpServer{
			Name: server.Name, Transport: server.Transport, Command: server.Command, Args: server.Args, Env: server.Env, Url: server.URL, Headers: server.Headers,
		}})
		return answer.GetContent(), err
	})
}

// RemoveMCPServer removes a server from the agent's files for a scope, and returns the path
// of the one that had it. With an empty scope it must stand in one scope only.
func (o *Own) RemoveMCPServer(ctx context.Context, scope, name string) (path string, _ error) {
	process, agent, err := o.configurer(ctx)
	if err != nil {
		return "", err
	}
	if scope != "" {
		if _, err := o.scoped(agent, agent.McpFiles, scope); err != nil {
			return "", err
		}
	}
	unlock, err := edit.Lock(ctx, o.host.opts.ConfigDir)
	if err != nil {
		return "", err
	}
	defer unlock()
	servers, err := o.MCPServers(ctx)
	if err != nil {
		return "", err
	}
	servers = slices.DeleteFunc(servers, func(s OwnMCPServer) bool { return s.Name != name || scope != "" && s.Scope != scope })
	switch {
	case len(servers) == 0:
		return "", invalid("agent %s has no MCP server %q", o.name, name).WithHint("amux agents mcp list %s shows them", o.name)
	case slices.ContainsFunc(servers, func(s OwnMCPServer) bool { return s.Scope != servers[0].Scope }):
		return "", invalid("agent %s has an MCP server %q in several scopes", o.name, name).WithHint("choose one: --scope %s", servers[0].Scope)
	}
	for _, s := range servers {
		place := &pb.Location{Scope: s.Scope, Path: s.Path}
		err := o.file(place).Change(func(before []byte) ([]byte, error) {
			answer, err := o.ask(ctx, process, &pluginapi.McpQuery{File: place, Content: before, Remove: name})
			return answer.GetContent(), err
		})
		if err != nil {
			return "", err
		}
	}
	return servers[0].Path, nil
}

// Skills lists the skills in the agent's folders. It starts nothing.
func (o *Own) Skills() ([]Skill, error) {
	agent, err := o.skilled()
	if err != nil {
		return nil, err
	}
	var list []Skill
	for _, place := range o.places(agent, agent.SkillFolders) {
		found, err := skill.List(place.Path)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			list = append(list, Skill{s.Name, s.Description, place.Scope, s.Path})
		}
	}
	return list, nil
}

// AddSkill copies a folder with a SKILL.md into the agent's folder for a scope.
func (o *Own) AddSkill(ctx context.Context, scope, from string) (Skill, error) {
	agent, err := o.skilled()
	if err != nil {
		return Skill{}, err
	}
	places, err := o.scoped(agent, agent.SkillFolders, scope)
	if err != nil {
		return Skill{}, err
	}
	if err := prepare(o.host); err != nil {
		return Skill{}, err
	}
	unlock, err := edit.Lock(ctx, o.host.opts.ConfigDir)
	if err != nil {
		return Skill{}, err
	}
	defer unlock()
	s, err := skill.Install(from, places[0].Path, o.file(places[0]).Project)
	return Skill{s.Name, s.Description, scope, s.Path}, err
}

// RemoveSkill removes a skill from the agent's folders for a scope, and returns where it
// was. With an empty scope it must be in one folder only.
func (o *Own) RemoveSkill(ctx context.Context, scope, name string) (path string, _ error) {
	agent, err := o.skilled()
	if err != nil {
		return "", err
	}
	if scope != "" {
		if _, err := o.scoped(agent, agent.SkillFolders, scope); err != nil {
			return "", err
		}
	}
	skills, err := o.Skills()
	if err != nil {
		return "", err
	}
	skills = slices.DeleteFunc(skills, func(s Skill) bool { return s.Name != name || scope != "" && s.Scope != scope })
	switch {
	case len(skills) == 0:
		return "", invalid("agent %s has no skill %q", o.name, name).WithHint("amux agents skills list %s shows them", o.name)
	case len(skills) > 1:
		return "", invalid("agent %s has a skill %q in %s and %s", o.name, name, skills[0].Path, skills[1].Path).WithHint("choose a scope with --scope, or remove one by hand")
	}
	if err := prepare(o.host); err != nil {
		return "", err
	}
	unlock, err := edit.Lock(ctx, o.host.opts.ConfigDir)
	if err != nil {
		return "", err
	}
	defer unlock()
	place := &pb.Location{Scope: skills[0].Scope, Path: filepath.Dir(skills[0].Path)}
	_, err = skill.Remove(place.Path, name, o.file(place).Project)
	return skills[0].Path, err
}

// folder is the project, or the working directory where there is none.
func (o *Own) folder() string {
	if dir := o.host.opts.ProjectDir; dir != "" {
		return dir
	}
	dir, _ := os.Getwd()
	return dir
}

func (o *Own) caller(agent *pluginapi.Agent) *pb.Caller {
	return caller(agent, o.host.opts.Env, o.folder(), nil)
}

func (o *Own) configurer(ctx context.Context) (*adapter.Process, *pluginapi.Agent, error) {
	return o.host.queries.capable(ctx, o.name, "read and edit the agent's MCP servers", (*pluginapi.Capabilities).GetMcpSettings)
}

func (o *Own) skilled() (*pluginapi.Agent, error) {
	_, agent, _, err := o.host.catalog.find(o.name, nil)
	if err == nil && len(agent.SkillFolders) == 0 {
		err = pluginapi.Errorf(pluginapi.CodeCapability, "agent %s: its adapter knows no folder for skills", o.name).
			WithHint("amux agents info %s shows what it can do", o.name)
	}
	return agent, err
}

// ask asks the adapter about a file.
func (o *Own) ask(ctx context.Context, process *adapter.Process, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	_, agent, _, err := o.host.catalog.find(o.name, nil)
	if err != nil {
		return nil, err
	}
	q.Agent, q.Caller = o.host.catalog.adapter(o.name), o.caller(agent)
	answer, err := process.McpServers(ctx, q, program.Exec(o.host.queries.command("")))
	o.host.plugins.Hangs(ctx, process, err)
	if err == nil && q.Add != nil && len(answer.GetContent()) == 0 {
		return nil, pluginapi.Errorf(pluginapi.CodePluginCrashed, "the adapter of %s would empty %s", o.name, q.File.GetPath())
	}
	return answer, err
}

// places are the files or folders that an agent declares, where they are for this caller.
// Those that it cannot have here, and those outside of where they may be, are left out.
func (o *Own) places(agent *pluginapi.Agent, declared []*pluginapi.Location) (places []*pluginapi.Location) {
	world := o.caller(agent)
	for _, l := range declared {
		text := l.GetPath()
		inProject := filepath.IsLocal(text) && !strings.HasPrefix(text, "~") && !strings.HasPrefix(text, "$")
		if !inProject && !strings.HasPrefix(text, "~/") && !strings.HasPrefix(text, "$") || inProject && o.folder() == "" {
			continue
		}
		path, ok := authprobe.Expand(text, world)
		if ok && !slices.ContainsFunc(places, func(p *pluginapi.Location) bool { return p.Path == path && p.Scope == l.GetScope() }) {
			places = append(places, &pb.Location{Scope: l.GetScope(), Path: path})
		}
	}
	return places
}

// scoped are the places of one scope.
func (o *Own) scoped(agent *pluginapi.Agent, declared []*pluginapi.Location, scope string) ([]*pluginapi.Location, error) {
	places := o.places(agent, declared)
	var scopes []string
	for _, p := range places {
		if !slices.Contains(scopes, p.Scope) {
			scopes = append(scopes, p.Scope)
		}
	}
	places = slices.DeleteFunc(places, func(p *pluginapi.Location) bool { return p.Scope != scope })
	if len(places) == 0 {
		return nil, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s has no scope %q here", o.name, scope).WithHint("it has: %s", strings.Join(scopes, ", "))
	}
	return places, nil
}

// file is how a place is guarded: what is below the project as part of a repository.
func (o *Own) file(place *pluginapi.Location) edit.File {
	f := edit.File{Path: place.Path}
	if place.Scope == ScopeProject {
		f.Project = o.folder()
	}
	return f
}
