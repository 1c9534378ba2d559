package app

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Selection says which runs a command is about, by what they have in common.
type Selection struct {
	Filters []string // KEY=VALUE
	Tags    []string
	Agents  []string
}

// AddFlags adds the flags of a selection to those of a command.
func (s *Selection) AddFlags(set *pflag.FlagSet) {
	AddRepeated(set, &s.Agents, "agent", "", "only runs of this `AGENT` (repeatable)")
	AddRepeated(set, &s.Tags, "tag", "", "only runs with this `TAG` (repeatable: with all of them)")
	AddRepeated(set, &s.Filters, "filter", "", "only runs that match `KEY=VALUE`, with a key of "+strings.Join(filterKeys, ", ")+" (repeatable)")
}

// Given reports whether anything is selected.
func (s *Selection) Given() bool { return len(s.Filters)+len(s.Tags)+len(s.Agents) > 0 }

// State reports whether runs are selected by their state.
func (s *Selection) State() bool {
	return slices.ContainsFunc(s.Filters, func(text string) bool { return strings.HasPrefix(text, "state=") })
}

// live and ended are states of --filter that stand for several.
const (
	stateLive  = "live"
	stateEnded = "ended"
)

var states = []string{
	stateLive, stateEnded, code.StateQueued, code.StateStarting, code.StateRunning, code.StateWaiting, code.StatePaused,
	code.StateCompleted, code.StateFailed, code.StateCanceled, code.StateTimedOut, code.StateLost,
}

// filters are the keys of --filter. Several values of one key are alternatives.
var filters = map[string]func(r host.RunInfo, value string) bool{
	"agent": func(r host.RunInfo, value string) bool { return r.Agent == value },
	"code":  func(r host.RunInfo, value string) bool { return strings.EqualFold(string(r.Code), value) },
	"cwd":   func(r host.RunInfo, value string) bool { return within(r.Cwd, value) },
	"id":    func(r host.RunInfo, value string) bool { return strings.Contains(r.ID, strings.ToUpper(value)) },
	"name":  func(r host.RunInfo, value string) bool { return strings.Contains(r.Name, value) },
	"prompt": func(r host.RunInfo, value string) bool {
		return strings.Contains(strings.ToLower(r.Prompt), strings.ToLower(value))
	},
	"project": func(r host.RunInfo, value string) bool { return within(r.Project, value) },
	"reason":  func(r host.RunInfo, value string) bool { return r.Reason == value },
	"state": func(r host.RunInfo, value string) bool {
		return r.State == value || value == stateLive && r.End == nil || value == stateEnded && r.End != nil
	},
	"tag": func(r host.RunInfo, value string) bool { return slices.Contains(r.Tags, value) },
}

var filterKeys = slices.Sorted(maps.Keys(filters))

// within reports whether a folder is dir or lies below it.
func within(folder, dir string) bool {
	folder, dir = filepath.ToSlash(folder), strings.TrimSuffix(filepath.ToSlash(dir), "/")
	return folder != "" && (folder == dir || strings.HasPrefix(folder, dir+"/"))
}

// Compile returns what tells whether a run is selected.
func (s *Selection) Compile(p *Process) (func(host.RunInfo) bool, error) {
	byKey := map[string][]string{}
	for _, text := range s.Filters {
		key, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || value == "":
			return nil, Usagef("invalid --filter %q: expected KEY=VALUE", text).WithHint("for example: --filter state=failed")
		case filters[key] == nil:
			err := Usagef("invalid --filter %q: there is no key %q", text, key)
			if near := registry.Nearest(key, filterKeys); near != "" {
				return nil, err.WithHint("did you mean %s=%s?", near, value)
			}
			return nil, err.WithHint("keys: %s", strings.Join(filterKeys, ", "))
		case key == "state":
			value = strings.ReplaceAll(value, " ", "_")
			if !slices.Contains(states, value) {
				return nil, Usagef("invalid --filter %q: there is no state %q", text, value).WithHint("states: %s", strings.Join(states, ", "))
			}
		case key == "cwd" || key == "project":
			value = p.Abs(value)
		}
		byKey[key] = append(byKey[key], value)
	}
	byKey["agent"] = append(byKey["agent"], s.Agents...)
	return func(r host.RunInfo) bool {
		for _, tag := range s.Tags {
			if !slices.Contains(r.Tags, tag) {
				return false
			}
		}
		for key, values := range byKey {
			if len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return filters[key](r, v) }) {
				return false
			}
		}
		return true
	}, nil
}
