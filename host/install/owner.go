package install

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// ownersName is the file that says which plugin serves an agent that more than one
// declares. It is no part of the lock, so that earlier builds can read that.
const ownersName = "agents.toml"

// TakeOver is what a person must know before a plugin takes an agent from another.
type TakeOver struct {
	Name, Version string // the plugin that is installed
	Agent         string
	From          string // the plugin that serves it now
	Bundled       bool   // From came with amux
}

func (d *Folder) readOwners() (map[string]string, error) {
	var file struct {
		Agents map[string]string `toml:"agents"`
	}
	data, err := foreign.Read(d.path(ownersName), foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", d.path(ownersName), fault.Plain(err))
	}
	if err := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(d.path(ownersName), err)).
			WithHint("restore the file, or delete it: bundled plugins then serve their agents again")
	}
	for id, name := range file.Agents {
		if CheckName(id) != nil || CheckName(name) != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %.80q = %.80q does not name an agent and a plugin", d.path(ownersName), id, name).
				WithHint("restore the file, or delete it: bundled plugins then serve their agents again")
		}
	}
	if file.Agents == nil {
		file.Agents = map[string]string{}
	}
	return file.Agents, nil
}

// writeOwners replaces the file if it says something else.
func (d *Folder) writeOwners(owners map[string]string) error {
	old, err := d.readOwners()
	if err != nil || maps.Equal(old, owners) {
		return err
	}
	var b strings.Builder
	b.WriteString("# Which plugin serves an agent that more than one declares, as you chose.\n[agents]\n")
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		fmt.Fprintf(&b, "%s = %s\n", id, quote(owners[id]))
	}
	if err := ReplaceFile(d.path(ownersName), []byte(b.String())); err != nil {
		return err
	}
	return d.fault("owners replaced")
}

// disown forgets what a plugin that was removed had taken over.
func (d *Folder) disown(name string) error {
	owners, err := d.readOwners()
	if err != nil {
		return err
	}
	maps.DeleteFunc(owners, func(_, by string) bool { return by == name })
	return d.writeOwners(owners)
}

// bundled are the agents of the plugins that came with amux, by the plugin's name.
func (in *Installer) bundled() map[string][]string {
	found := map[string][]string{}
	if in.opts.BundledDir == "" {
		return found
	}
	entries, _ := os.ReadDir(in.opts.BundledDir) // absent: nothing is bundled
	for _, e := range entries {
		if e.IsDir() && CheckName(e.Name()) == nil {
			found[e.Name()] = agentsIn(filepath.Join(in.opts.BundledDir, e.Name()))
		}
	}
	return found
}

// agentsIn are the agents of the manifest in a folder; none if it cannot be read.
func agentsIn(dir string) (ids []string) {
	data, err := foreign.Read(filepath.Join(dir, ManifestName), foreign.Rule{Limit: manifestSize})
	if err != nil {
		return nil
	}
	var m Manifest
	_ = toml.Unmarshal(data, &m) // what can be read of it counts
	for _, a := range m.Agents {
		ids = append(ids, a.ID)
	}
	return ids
}

// agents are those of a locked plugin as it lies on the disk.
func (d *Folder) agents(entry Locked) []string {
	if entry.Link != "" {
		return agentsIn(entry.Link)
	}
	return agentsIn(storePath(d.dir, entry.Name, entry.Version, Platform()))
}

// checkBundledName refuses a plugin that would replace one that came with amux.
func (in *Installer) checkBundledName(req Request, current *Locked, name string) error {
	if _, ok := in.bundled()[name]; ok && current == nil && !req.Replace {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s comes with amux", name).
			WithHint("to use this one in its place: --replace")
	}
	return nil
}

// claim decides whether a plugin may serve the agents that its manifest declares, and
// returns who serves what once it is installed. An agent belongs to one plugin: another
// that did not declare it before gets it by the user's word only.
func (in *Installer) claim(req Request, lock *Lock, m *Manifest, who signed) (map[string]string, error) {
	owners, err := in.readOwners()
	if err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) *pluginapi.Error {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s %s", m.Name, m.Version, fmt.Sprintf(format, args...))
	}
	declared := map[string]bool{}
	for _, a := range m.Agents {
		declared[a.ID] = true
	}
	for _, id := range req.TakeOver {
		if !declared[id] {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "plugin %s %s has no agent %.40q to take over", m.Name, m.Version, id).
				WithHint("its agents are: %s", strings.Join(slices.Sorted(maps.Keys(declared)), ", "))
		}
	}
	had := map[string]bool{}
	if current := lock.Get(m.Name); current != nil {
		for _, id := range in.agents(*current) {
			had[id] = true
		}
	}
	bundled, from := in.bundled(), map[string]string{}
	for _, entry := range lock.Plugins {
		if entry.Name == m.Name {
			continue
		}
		for _, id := range in.agents(entry) {
			if from[id] == "" || owners[id] == entry.Name {
				from[id] = entry.Name
			}
		}
	}
	for name, ids := range bundled {
		if lock.Get(name) != nil || name == m.Name {
			continue // it is replaced
		}
		for _, id := range ids {
			if from[id] == "" || owners[id] != from[id] {
				from[id] = name
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(declared)) {
		asked := slices.Contains(req.TakeOver, id)
		if who.key != "" && !who.maySign(id) && !had[id] && !asked {
			return nil, refuse("is signed by %s, whose key is trusted for %s, and not for the agent %s", who.name, strings.Join(who.names, ", "), id).
				WithHint("if it may serve that agent: amux plugin trust add %s %s --names %s", who.name, who.key, id)
		}
		other := from[id]
		if other == "" || had[id] && !asked {
			continue
		}
		_, isBundled := bundled[other]
		isBundled = isBundled && lock.Get(other) == nil
		if !asked && req.AskTakeOver != nil {
			asked = req.AskTakeOver(TakeOver{Name: m.Name, Version: m.Version, Agent: id, From: other, Bundled: isBundled})
		}
		if !asked {
			kind := "plugin"
			if isBundled {
				kind = "bundled plugin"
			}
			return nil, refuse("declares the agent %s, which belongs to the %s %s", id, kind, other).
				WithHint("to let it serve that agent from now on: --take-over %s", id)
		}
		owners[id] = m.Name
	}
	maps.DeleteFunc(owners, func(id, by string) bool { return by == m.Name && !declared[id] })
	return owners, nil
}
