package acp

import (
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/jsonrpc"
)

// settings are those of the session: its mode, its model, and what else the agent offers.
type settings struct {
	*link
	config  *Session
	options []option
	mode    string

	models    []string // asked for by the user, before the session was there
	switching int      // models that the agent was asked for and has not answered yet
}

// option is one of the agent's settings.
type option struct{ id, category, value string }

// take keeps the settings that the agent tells.
func (s *settings) take(v jsonl.Value) {
	if !v.IsArray("configOptions") {
		return
	}
	s.options = nil
	for _, o := range v.Items("configOptions") {
		value := o.Text("currentValue")
		if o.Text("type") == "boolean" {
			value = strconv.FormatBool(o.Bool("currentValue"))
		}
		s.options = append(s.options, option{o.Text("id"), o.Text("category"), value})
	}
}

// find finds a setting by its category or, where it has none, its id.
func (s *settings) find(category string) *option {
	for i, o := range s.options {
		if o.category == category || o.category == "" && o.id == category {
			return &s.options[i]
		}
	}
	return nil
}

func (s *settings) value(category string) string {
	if o := s.find(category); o != nil {
		return o.value
	}
	return ""
}

// switched is the note of a request for a model that the user has made while the
// conversation goes on.
const switched = "switched"

// switchModels asks the agent for the models that the user wants, in their order.
func (s *settings) switchModels(out *sdk.Out) error {
	for _, model := range s.models {
		s.switching++
		if err := s.setModel(model, switched, out); err != nil {
			return err
		}
	}
	s.models = nil
	return nil
}

// switchedTo takes the agent's answer to one of them.
func (s *settings) switchedTo(m *jsonrpc.Message, out *sdk.Out) {
	s.switching--
	if refused := s.refusal(m); refused != "" {
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeAgentFailed, Message: refused, Recoverable: true})
	}
}

func (s *settings) setModel(model string, note any, out *sdk.Out) error {
	if s.config.Model != nil {
		model = s.config.Model(model)
	}
	if o := s.find("model"); o != nil {
		return s.setOption(o.id, model, note, out)
	}
	return s.request("session/set_model", map[string]any{"sessionId": s.Session, "modelId": model}, note, out)
}

func (s *settings) setOption(id, value string, note any, out *sdk.Out) error {
	return s.request("session/set_config_option", map[string]any{"sessionId": s.Session, "configId": id, "value": value}, note, out)
}

func (s *settings) modeIs(mode string, out *sdk.Out) {
	if mode == "" || mode == s.mode {
		return
	}
	first := s.mode == ""
	s.mode = mode
	if !first {
		out.Event(pluginapi.ModeChanged{Mode: mode})
	}
}
