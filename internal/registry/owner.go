package registry

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// ownersName is the file that says which plugin serves an agent that more than one
// declares: agents.toml beside the user's lock, written at --take-over.
const ownersName = "agents.toml"

// readOwners returns plugin names by agent id; absent is empty.
func readOwners(path string) (map[string]string, error) {
	var file struct {
		Agents map[string]string `toml:"agents"`
	}
	data, err := foreign.Read(path, foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path, fault.Plain(err))
	}
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(path, err)).
			WithHint("restore the file, or delete it: bundled plugins then serve their agents again")
	}
	return file.Agents, nil
}

// Claim is an agent that more than one plugin declares.
type Claim struct {
	Agent string
	// By is the plugin that serves it. It is empty if the user has not said which one
	// does and none is bundled: then nobody does.
	By string
	// TakenOver: By serves it because the user said so.
	TakenOver bool
	// Others are the other plugins that declare it, sorted.
	Others []string
}

// Claims lists the agents that more than one of the plugins declares, by id.
func Claims(plugins []Plugin) []Claim {
	declared := map[string][]string{}
	for _, p := range plugins {
		for _, id := range p.declared() {
			declared[id] = append(declared[id], p.Name)
		}
	}
	all := NewSet(plugins)
	var claims []Claim
	for id, names := range declared {
		if len(names) < 2 {
			continue
		}
		claim := Claim{Agent: id}
		if owner, err := all.owner(id); err == nil && owner != nil {
			claim.By, claim.TakenOver = owner.Name, owner.Granted(id)
		}
		claim.Others = slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool { return name == claim.By })
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b Claim) int { return strings.Compare(a.Agent, b.Agent) })
	return claims
}

// Granted reports that the user chose the plugin for the agent.
func (p Plugin) Granted(agent string) bool { return slices.Contains(p.granted, agent) }

// declared are the ids of the plugin's agents. Those of a broken plugin come from its
// manifest: it keeps what is its own, so that no other plugin silently replaces it.
func (p Plugin) declared() []string {
	var ids []string
	switch {
	case p.Err == nil:
		for _, a := range p.Description.GetAgents() {
			ids = append(ids, a.Id)
		}
	case p.Manifest != nil:
		ids = p.named()
	}
	return ids
}

// named are the ids in the plugin's manifest.
func (p Plugin) named() (ids []string) {
	for _, a := range p.Manifest.Agents {
		ids = append(ids, a.ID)
	}
	return ids
}

// owners returns plugin names by the id of the agent that the user chose them for.
func (r *Registry) owners() (map[string]string, error) {
	if r.opts.PluginDir == "" {
		return nil, nil
	}
	return readOwners(filepath.Join(r.opts.PluginDir, ownersName))
}
