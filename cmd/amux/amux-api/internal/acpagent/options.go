package acpagent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	// modelOption is the id of the option for the model, where the agent takes another one
	// while it runs.
	modelOption = "model"
	// modeOption is the id of the option that says who answers when the agent asks. Clients that
	// know no options have it as the session's mode.
	modeOption = "mode"
	// ownModel stands for the agent's own choice, where nobody knows which model that is.
	ownModel = "default"
	// modelsTime bounds how long an agent may take to say which models it has.
	modelsTime = 5 * time.Second
)

// models are those that an agent has, if it takes another one while it runs; else none.
func (g *agent) models(ctx context.Context, name string) []*pluginapi.Model {
	info, err := g.host.Agent(ctx, name)
	if err != nil || !info.Description.GetCapabilities().GetSetModel() {
		return nil
	}
	if known := info.Description.GetModels(); len(known) > 0 {
		return known
	}
	g.mu.Lock()
	list, ok := g.listed[name]
	g.mu.Unlock()
	if ok {
		return list
	}
	ctx, cancel := context.WithTimeout(ctx, modelsTime)
	defer cancel()
	list, _ = g.host.AgentModels(ctx, name) // one that cannot say has no option
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listed[name] = list
	return list
}

// settings are what a client can change of a session, as they are now.
type settings struct {
	approve host.ApproveMode // empty: it cannot be changed
	model   string           // empty: it cannot be changed
	models  []acp.SessionConfigSelectOption
}

// approvals are the modes of a session, with what clients show.
var approvals = []struct {
	mode              host.ApproveMode
	name, description string
}{
	{host.ApproveAsk, "Ask", "You are asked before the agent acts, where no rule decides"},
	{host.ApproveAuto, "Allow", "The agent may do all that no rule denies"},
	{host.ApproveDeny, "Refuse", "All is denied that no rule allows"},
}

// settings are those of the session.
func (s *session) settings(ctx context.Context) (now settings) {
	r, err := s.agent.host.Open(ctx, s.runID())
	if err != nil {
		return now
	}
	info := r.Info()
	if info.Spec.Approve == host.ApproveAsk && s.agent.asks(ctx, info.Agent) {
		now.approve = s.approves(info)
	}
	models := s.agent.models(ctx, info.Agent)
	if len(models) == 0 {
		return now
	}
	if now.model = s.chosen(); now.model == "" {
		now.model = lastModel(info)
	}
	add := func(value, name string) {
		now.models = append(now.models, acp.SessionConfigSelectOption{Value: acp.SessionConfigValueId(value), Name: name})
	}
	for _, m := range models {
		name := m.GetDisplayName()
		if name == "" {
			name = m.GetId()
		}
		add(m.GetId(), name)
		if now.model == "" && m.GetIsDefault() || slices.Contains(m.GetAliases(), now.model) {
			now.model = m.GetId()
		}
	}
	if now.model == "" {
		now.model = ownModel
		add(ownModel, "The agent's own choice")
	} else if !has(now.models, now.model) {
		add(now.model, now.model)
	}
	return now
}

func has(choices []acp.SessionConfigSelectOption, value string) bool {
	return slices.ContainsFunc(choices, func(c acp.SessionConfigSelectOption) bool { return string(c.Value) == value })
}

// options are the settings as configuration options.
func (now settings) options() (out []acp.SessionConfigOption) {
	add := func(id, name, value string, kind acp.SessionConfigOptionCategory, choices acp.SessionConfigSelectOptionsUngrouped) {
		out = append(out, acp.SessionConfigOption{Select: &acp.SessionConfigOptionSelect{
			Id: acp.SessionConfigId(id), Name: name, Type: "select", Category: &kind, CurrentValue: acp.SessionConfigValueId(value),
			Options: acp.SessionConfigSelectOptions{Ungrouped: &choices},
		}})
	}
	if now.approve != "" {
		var choices acp.SessionConfigSelectOptionsUngrouped
		for _, a := range approvals {
			choices = append(choices, acp.SessionConfigSelectOption{Value: acp.SessionConfigValueId(a.mode), Name: a.name, Description: &a.description})
		}
		add(modeOption, "Approvals", string(now.approve), acp.SessionConfigOptionCategoryMode, choices)
	}
	if now.model != "" {
		add(modelOption, "Model", now.model, acp.SessionConfigOptionCategoryModel, now.models)
	}
	return out
}

// modes are the settings as the modes of a session; nil if there are none to choose from.
func (now settings) modes() *acp.SessionModeState {
	if now.approve == "" {
		return nil
	}
	state := &acp.SessionModeState{CurrentModeId: acp.SessionModeId(now.approve)}
	for _, a := range approvals {
		state.AvailableModes = append(state.AvailableModes, acp.SessionMode{Id: acp.SessionModeId(a.mode), Name: a.name, Description: &a.description})
	}
	return state
}

// asks reports whether an agent asks before it acts.
func (g *agent) asks(ctx context.Context, name string) bool {
	info, err := g.host.Agent(ctx, name)
	return err == nil && info.Description.GetCapabilities().GetApprovals()
}

// recent is how many of the last events of a run are looked at for its model.
const recent = 200

// lastModel is the model that a run has used last, or was started with; empty if neither is
// known.
func lastModel(info host.RunInfo) string {
	for _, e := range slices.Backward(info.Recent(recent)) {
		if u, ok := e.Payload().(pluginapi.TokenUsage); ok && u.Model != "" {
			return u.Model
		}
	}
	return info.Spec.Model
}

// setConfigOption changes a setting.
func (g *agent) setConfigOption(ctx context.Context, in acp.SetSessionConfigOptionRequest) (out acp.SetSessionConfigOptionResponse, _ error) {
	if in.ValueId == nil {
		return out, app.Usagef("there is no such option").WithHint("the options are %s and %s", modeOption, modelOption)
	}
	s, err := g.session(in.ValueId.SessionId)
	if err != nil {
		return out, err
	}
	switch value := string(in.ValueId.Value); in.ValueId.ConfigId {
	case modeOption:
		err = s.setApprove(ctx, host.ApproveMode(value))
	case modelOption:
		err = s.setModel(ctx, value)
	default:
		err = app.Usagef("there is no such option").WithHint("the options are %s and %s", modeOption, modelOption)
	}
	if err != nil {
		return out, err
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: s.settings(ctx).options()}, nil
}

// setMode changes who answers when the agent asks.
func (g *agent) setMode(ctx context.Context, in acp.SetSessionModeRequest) (out acp.SetSessionModeResponse, _ error) {
	s, err := g.session(in.SessionId)
	if err == nil {
		err = s.setApprove(ctx, host.ApproveMode(in.ModeId))
	}
	return out, err
}

// setApprove changes who answers from now on when the agent asks. Where the run has ended the one
// in which the session goes on begins with it.
func (s *session) setApprove(ctx context.Context, mode host.ApproveMode) error {
	now := s.settings(ctx)
	if now.approve == "" {
		return app.Usagef("who answers cannot be changed in this session")
	}
	if !slices.ContainsFunc(now.modes().AvailableModes, func(m acp.SessionMode) bool { return string(m.Id) == string(mode) }) {
		return app.Usagef("there is no mode %q", render.String(string(mode)))
	}
	if now.approve == mode {
		return nil
	}
	r, err := s.agent.find(ctx, s.runID())
	if err != nil {
		return err
	}
	if r.Info().End == nil {
		if err := r.SetApprove(ctx, mode); !errors.Is(err, pluginapi.CodeRunNotActive) {
			return err
		}
	}
	s.mu.Lock()
	s.approve = mode
	s.mu.Unlock()
	return nil
}

// setModel has the agent use another model from its next turn on.
func (s *session) setModel(ctx context.Context, model string) error {
	now := s.settings(ctx)
	switch {
	case now.model == "":
		return app.Usagef("the agent takes no other model while it runs")
	case !has(now.models, model):
		return app.Usagef("there is no model %q", render.String(model))
	case now.model == model:
		return nil
	}
	r, err := s.agent.find(ctx, s.runID())
	if err != nil {
		return err
	}
	if r.Info().End == nil { // else the run that goes on is started with it
		if err := r.SetModel(ctx, model); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.model = model
	s.mu.Unlock()
	return nil
}
