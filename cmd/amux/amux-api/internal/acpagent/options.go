package acpagent

import (
	"context"
	"slices"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	// modelOption is the id of the only option: the model, where the agent takes another one
	// while it runs.
	modelOption = "model"
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

// config are the options of a session, as they are now.
func (s *session) config(ctx context.Context) []acp.SessionConfigOption {
	s.mu.Lock()
	id, current := s.run, s.model
	s.mu.Unlock()
	r, err := s.agent.host.Open(ctx, id)
	if err != nil {
		return nil
	}
	info := r.Info()
	models := s.agent.models(ctx, info.Agent)
	if len(models) == 0 {
		return nil
	}
	if current == "" {
		current = lastModel(info)
	}
	var choices acp.SessionConfigSelectOptionsUngrouped
	add := func(value, name string) {
		choices = append(choices, acp.SessionConfigSelectOption{Value: acp.SessionConfigValueId(value), Name: name})
	}
	for _, m := range models {
		name := m.GetDisplayName()
		if name == "" {
			name = m.GetId()
		}
		add(m.GetId(), name)
		if current == "" && m.GetIsDefault() || slices.Contains(m.GetAliases(), current) {
			current = m.GetId()
		}
	}
	if current == "" {
		current = ownModel
		add(ownModel, "The agent's own choice")
	} else if !slices.ContainsFunc(choices, func(c acp.SessionConfigSelectOption) bool { return string(c.Value) == current }) {
		add(current, current)
	}
	kind := acp.SessionConfigOptionCategoryModel
	return []acp.SessionConfigOption{{Select: &acp.SessionConfigOptionSelect{
		Id: modelOption, Name: "Model", Type: "select", Category: &kind, CurrentValue: acp.SessionConfigValueId(current),
		Options: acp.SessionConfigSelectOptions{Ungrouped: &choices},
	}}}
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

// SetSessionConfigOption has the agent use another model from its next turn on.
func (g *agent) SetSessionConfigOption(ctx context.Context, in acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	fail := func(err error) (acp.SetSessionConfigOptionResponse, error) {
		return acp.SetSessionConfigOptionResponse{}, failed(err)
	}
	if in.ValueId == nil || in.ValueId.ConfigId != modelOption {
		return fail(app.Usagef("there is no such option").WithHint("the only one is %s", modelOption))
	}
	s, err := g.session(in.ValueId.SessionId)
	if err != nil {
		return acp.SetSessionConfigOptionResponse{}, err
	}
	model := string(in.ValueId.Value)
	options := s.config(ctx)
	if len(options) == 0 {
		return fail(app.Usagef("the agent takes no other model while it runs"))
	}
	choice := options[0].Select
	if !slices.ContainsFunc(*choice.Options.Ungrouped, func(c acp.SessionConfigSelectOption) bool { return string(c.Value) == model }) {
		return fail(app.Usagef("there is no model %q", render.String(model)))
	}
	if string(choice.CurrentValue) == model {
		return acp.SetSessionConfigOptionResponse{ConfigOptions: options}, nil
	}
	s.mu.Lock()
	id := s.run
	s.mu.Unlock()
	r, err := g.find(ctx, id)
	if err != nil {
		return fail(err)
	}
	if r.Info().End == nil { // else the run that goes on is started with it
		if err := r.SetModel(ctx, model); err != nil {
			return fail(err)
		}
	}
	s.mu.Lock()
	s.model = model
	s.mu.Unlock()
	return acp.SetSessionConfigOptionResponse{ConfigOptions: s.config(ctx)}, nil
}
