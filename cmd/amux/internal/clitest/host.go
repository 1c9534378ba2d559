// Package clitest is a made-up world for the tests of commands: a host with agents, a run
// that plays events, somebody who types.
package clitest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Host is a host with made-up agents and one made-up run.
type Host struct {
	AgentList []host.AgentInfo
	Auth      *pluginapi.AuthResponse
	Run       *Run
	Refuse    error // of Start
	// Starting, if not nil, is what Start does; done is that of its context.
	Starting    func(done <-chan struct{}) error
	Opts        host.Options
	Spec        host.RunSpec
	Started     bool
	RunList     []host.RunInfo
	Outcome     host.Outcome
	Removed     []host.Removed
	Integrity   host.Integrity
	Asked       []string
	Closed      bool
	SessionList []host.Session
	PluginList  []*pluginapi.AgentPlugin
	ModelList   []*pluginapi.Model
	Way         host.Installation
	Talks       map[string][]host.Event
	SpendList   []host.Spending
	Trees       app.Worktrees
	PlaceList   app.Places
	MCPList     []host.OwnMCPServer
	SkillList   []host.Skill
}

var _ app.Host = (*Host)(nil)

func (h *Host) Start(ctx context.Context, spec host.RunSpec) (app.Run, error) {
	h.Spec, h.Started = spec, true
	if h.Starting != nil {
		if err := h.Starting(ctx.Done()); err != nil {
			return nil, err
		}
	}
	if h.Refuse != nil {
		return nil, h.Refuse
	}
	return h.Run, nil
}

func (h *Host) Agents(context.Context) ([]host.AgentInfo, error) { return h.AgentList, nil }

func (h *Host) Agent(_ context.Context, name string) (host.AgentInfo, error) {
	for _, a := range h.AgentList {
		if a.Description.Id == name {
			return a, a.Err
		}
	}
	return host.AgentInfo{}, pluginapi.Errorf(pluginapi.CodeAgentNotFound, "there is no agent named %q", name).WithHint("did you mean x?")
}

// own is what an agent has of its own.
type own struct {
	host *Host
	name string
}

func (h *Host) Own(name string) app.Own { return own{h, name} }

// can is the refusal of agents that have nothing of their own.
func (o own) can(what string) error {
	if o.name != "alpha" {
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s: its adapter cannot %s", o.name, what)
	}
	return o.host.Refuse
}

func (o own) asked(format string, args ...any) {
	o.host.Asked = append(o.host.Asked, fmt.Sprintf(format, args...))
}

func (o own) Plugins(context.Context) ([]*pluginapi.AgentPlugin, error) {
	return o.host.PluginList, o.can("list plugins")
}

func (o own) AddPlugin(_ context.Context, source string) error {
	o.asked("add plugin %s", source)
	return o.can("add or remove plugins")
}

func (o own) RemovePlugin(_ context.Context, id string) error {
	o.asked("remove plugin %s", id)
	return o.can("add or remove plugins")
}

func (o own) MCPServers(context.Context) ([]host.OwnMCPServer, error) {
	return o.host.MCPList, o.can("read and edit the agent's MCP servers")
}

func (o own) AddMCPServer(_ context.Context, scope string, s host.MCPServer) (string, error) {
	o.asked("add %s %+v", scope, s)
	return "/home/u/settings.json", o.can("read and edit the agent's MCP servers")
}

func (o own) RemoveMCPServer(_ context.Context, scope, name string) (string, error) {
	o.asked("remove %q %s", scope, name)
	return "/home/u/settings.json", o.can("read and edit the agent's MCP servers")
}

func (o own) Skills() ([]host.Skill, error) { return o.host.SkillList, o.can("find skills") }

func (o own) AddSkill(_ context.Context, scope, from string) (host.Skill, error) {
	o.asked("add skill %s %s", scope, from)
	return host.Skill{Name: "hello", Scope: scope, Path: "/home/u/skills/hello"}, o.can("find skills")
}

func (o own) RemoveSkill(_ context.Context, scope, name string) (string, error) {
	o.asked("remove skill %q %s", scope, name)
	return "/home/u/skills/hello", o.can("find skills")
}

func (h *Host) AgentModels(context.Context, string) ([]*pluginapi.Model, error) {
	return h.ModelList, nil
}

func (h *Host) DetectAuth(context.Context, string) (*pluginapi.AuthResponse, error) {
	return h.Auth, nil
}

func (h *Host) Sessions(_ context.Context, q host.SessionQuery) ([]host.Session, error) {
	h.Asked = append(h.Asked, fmt.Sprintf("sessions %s %q %d", q.Agent, q.Cwd, q.Limit))
	return h.SessionList, h.Refuse
}

func (h *Host) ReadSession(_ context.Context, agent, id string, _ bool, each func(host.Event) bool) error {
	for _, e := range h.Talks[id] {
		if !each(e) {
			return nil
		}
	}
	return nil
}

func (h *Host) Installation(_ context.Context, name, kind string) (host.Installation, error) {
	h.Asked = append(h.Asked, fmt.Sprintf("installation %s %q", name, kind))
	return h.Way, h.Refuse
}

func (h *Host) Install(_ context.Context, i host.Installation, _ io.Reader, _ io.Writer) (host.AgentInfo, error) {
	h.Asked = append(h.Asked, "install "+strings.Join(i.Argv, " "))
	return Agent(i.Agent, func(a *host.AgentInfo) { a.Version, a.Program = i.Version, "/bin/"+i.Agent }), h.Refuse
}

func (h *Host) Refresh(ctx context.Context, name string) (host.AgentInfo, error) {
	h.Asked = append(h.Asked, "refresh "+name)
	return h.Agent(ctx, name)
}

func (h *Host) Open(_ context.Context, ref string) (app.Recorded, error) {
	if h.Run == nil || h.Run.ID() != ref {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "there is no run %q", ref)
	}
	return h.Run, nil
}

func (h *Host) Spending(_ context.Context, since time.Time, f func(*host.Spending)) (int, error) {
	for _, s := range h.SpendList {
		if s.Run.Ended == nil || !s.Run.Ended.Before(since) {
			f(&s)
		}
	}
	return 0, h.Refuse
}

// RunsBefore are the runs of RunList whose ids sort before one, in the order of the list.
func (h *Host) RunsBefore(_ context.Context, id string, ended bool) iter.Seq2[host.RunInfo, error] {
	return func(yield func(host.RunInfo, error) bool) {
		h.Asked = append(h.Asked, "all runs")
		if h.Refuse != nil {
			yield(host.RunInfo{}, h.Refuse)
			return
		}
		for _, r := range h.RunList {
			if (id == "" || r.ID < id) && (!ended || r.End != nil) && !yield(r, nil) {
				return
			}
		}
	}
}

func (h *Host) AnyRun() bool { return len(h.RunList) > 0 }

func (h *Host) Live(context.Context) ([]host.RunInfo, error) {
	return slices.DeleteFunc(slices.Clone(h.RunList), func(r host.RunInfo) bool { return r.End != nil }), nil
}

func (h *Host) Cancel(_ context.Context, ref string, kill bool) (host.Outcome, error) {
	h.Asked = append(h.Asked, fmt.Sprintf("cancel %s %v", ref, kill))
	return h.Outcome, h.Refuse
}

func (h *Host) Delete(_ context.Context, ref string) (host.Outcome, error) {
	h.Asked = append(h.Asked, "delete "+ref)
	return h.Outcome, h.Refuse
}

func (h *Host) Clean(_ context.Context, dry bool) ([]host.Removed, error) {
	h.Asked = append(h.Asked, fmt.Sprintf("clean %v", dry))
	return h.Removed, nil
}

func (h *Host) Retain(context.Context) error {
	h.Asked = append(h.Asked, "retain")
	return nil
}

func (h *Host) Adopt(context.Context, ...string) ([]app.Run, error) { return nil, nil }

func (h *Host) Orphans() []string { return nil }

func (h *Host) Abandoned() []string { return nil }

func (h *Host) Recover(context.Context) (bool, error) { return false, nil }

func (h *Host) Check(context.Context, string) (host.Integrity, error) { return h.Integrity, nil }

func (h *Host) RecoverRun(_ context.Context, ref string) (bool, error) {
	h.Asked = append(h.Asked, "recover "+ref)
	return false, nil
}

func (h *Host) ReplayWith(_ context.Context, _ string, o host.ReplayOptions, w io.Writer) error {
	if o.Plugin != "" {
		o.OnPlugin("other", "2.0.0")
		_, err := fmt.Fprintln(w, `{"type":"log","seq":1,"message":"of the other plugin"}`)
		return err
	}
	return h.Run.CopyEvents(context.Background(), w, 1)
}

func (h *Host) Worktrees() app.Worktrees { return h.Trees }

func (h *Host) Places() app.Places { return h.PlaceList }

func (h *Host) Close(context.Context) error {
	h.Closed = true
	return nil
}

func Agent(id string, change func(*host.AgentInfo)) host.AgentInfo {
	a := host.AgentInfo{
		Bundled:     true,
		Description: &pluginapi.Agent{Id: id, Summary: "Agent " + id, Capabilities: &pluginapi.Capabilities{Approvals: true, SystemAppend: true}},
		Plugin:      id, PluginVersion: "1.0.0", Trust: "bundled", PlatformOK: true, Installed: true, SignedIn: true,
		Auth: []*pluginapi.AuthState{{Provider: "p", Status: "authenticated", Method: "api_key", Found: "env P_KEY"}},
	}
	if change != nil {
		change(&a)
	}
	return a
}
