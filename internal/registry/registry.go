package registry

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/amux-dev/amux/pluginapi"
)

// Options say where plugins are looked for. An empty folder is not searched.
type Options struct {
	// ConfigDir holds plugins/run and plugins/verified.json.
	ConfigDir string
	// PluginDir holds the store and the user's lock; default <ConfigDir>/plugins.
	PluginDir string
	// ProjectDir may hold .agent-mux/plugins.lock.
	ProjectDir string
	// BundledDir has one folder for each plugin that came with the program.
	BundledDir string
	// BundledHashes are the SHA-256 sums of the bundled executables, by name.
	BundledHashes map[string]string
	// Overrides are executables or folders by plugin name.
	Overrides map[string]string
	// AlwaysVerify hashes on every Verify, whatever verified.json says.
	AlwaysVerify bool
	// Version of the program, for manifests that ask for a range of it. What is
	// no semantic version meets every range.
	Version string
}

// Registry finds and verifies plugins.
type Registry struct {
	opts Options
	mu   sync.Mutex // makes Verify one at a time, so that one plugin is copied once
	read files
}

// New returns a Registry. It touches no file.
func New(opts Options) *Registry {
	if opts.PluginDir == "" && opts.ConfigDir != "" {
		opts.PluginDir = filepath.Join(opts.ConfigDir, "plugins")
	}
	return &Registry{opts: opts}
}

// Dir is the folder of installed plugins; "" if there is none.
func (r *Registry) Dir() string { return r.opts.PluginDir }

// List returns all plugins by name, those that cannot be used with Err. It looks at
// the disk each time. A lock file that cannot be read is a row of its own.
func (r *Registry) List() []Plugin {
	chosen := r.choose("")
	plugins := slices.SortedFunc(maps.Values(chosen), func(a, b Plugin) int { return strings.Compare(a.Name, b.Name) })
	return plugins
}

// Agent is Choose from all plugins.
func (r *Registry) Agent(name string) (Plugin, *pluginapi.Agent, error) {
	if p, agent, err := known(r, name); err == nil {
		return p, agent, nil
	}
	return Choose(r.List(), name) // the error is about all of them
}

// Has returns what is said of an agent; nil if no plugin that can be used serves it.
func (r *Registry) Has(name string) *pluginapi.Agent {
	_, agent, err := known(r, name)
	if err != nil {
		return nil
	}
	return agent
}

// known is r.Agent without the descriptions of bundled plugins whose manifest does not name
// the agent: to parse them all is a good part of a start.
func known(r *Registry, name string) (Plugin, *pluginapi.Agent, error) {
	return Choose(slices.Collect(maps.Values(r.choose(name))), name)
}

// Choose returns the plugin that serves the agent of that name, and what it says
// about it. An agent belongs to one plugin: see Claim. The error is that of the plugin
// it belongs to if that cannot be used, and AGENT_NOT_FOUND with the nearest name if
// there is none.
func Choose(plugins []Plugin, name string) (Plugin, *pluginapi.Agent, error) {
	plugins = slices.Clone(plugins)
	slices.SortStableFunc(plugins, func(a, b Plugin) int { return int(a.rank) - int(b.rank) })
	serving, err := owner(plugins, name)
	for _, p := range plugins {
		// What it would have chosen is not known, so nothing of lower precedence may
		// silently take its place.
		if p.lockFile && (serving == nil || p.rank <= serving.rank) {
			return p, nil, p.Err
		}
	}
	if err != nil {
		return Plugin{}, nil, err
	}
	if serving != nil {
		if serving.Err != nil {
			return *serving, nil, serving.Err
		}
		i := slices.IndexFunc(serving.Description.Agents, func(a *pluginapi.Agent) bool { return a.Id == name })
		return *serving, serving.Description.Agents[i], nil
	}
	var known []string
	var broken *Plugin
	for i, p := range plugins {
		if p.Err == nil {
			known = append(known, p.declared()...)
			continue
		}
		if p.Name == name {
			return p, nil, p.Err // its manifest may not say what it serves
		}
		if broken == nil {
			broken = &plugins[i]
		}
	}
	if broken != nil && broken.Origin == OriginOverride {
		return *broken, nil, broken.Err // somebody is at work on it: this is what they must see
	}
	notFound := pluginapi.Errorf(pluginapi.CodeAgentNotFound, "there is no agent named %q", name)
	if near := Nearest(name, known); near != "" {
		return Plugin{}, nil, notFound.WithHint("did you mean %s? All agents: amux agents list", near)
	}
	if broken != nil {
		return Plugin{}, nil, notFound.WithHint("%s cannot be used, see: amux doctor", broken.label())
	}
	return Plugin{}, nil, notFound.WithHint("all agents: amux agents list")
}

// choose picks one plugin for each name. only is the id of the one agent that is looked for,
// or empty: the descriptions of bundled plugins that name other agents are not read then.
func (r *Registry) choose(only string) map[string]Plugin {
	chosen := map[string]Plugin{}
	add := func(p Plugin) {
		if _, taken := chosen[p.Name]; !taken {
			chosen[p.Name] = p
		}
	}
	for name, path := range r.opts.Overrides {
		add(r.fromOverride(name, path))
	}
	broken := func(path string, origin Origin, err error) {
		add(Plugin{Name: string(origin), Dir: filepath.Dir(path), Source: path, Origin: origin, rank: ranks[origin], lockFile: true, Err: err})
	}
	var users *lockFile
	var usersErr error
	userPath := filepath.Join(r.opts.PluginDir, lockName)
	if r.opts.PluginDir != "" {
		users, usersErr = readLock(userPath, r.readUserLock)
	}
	if r.opts.ProjectDir != "" {
		path := filepath.Join(r.opts.ProjectDir, ".agent-mux", lockName)
		if lock, err := readLock(path, r.readProjectLock); err != nil {
			broken(path, OriginProject, err)
		} else {
			r.fromLock(lock, path, OriginProject, users, chosen, add)
		}
	}
	if usersErr != nil {
		broken(userPath, OriginUser, usersErr)
	} else if users != nil {
		r.fromLock(users, userPath, OriginUser, users, chosen, add)
	}
	if r.opts.BundledDir != "" {
		entries, _ := os.ReadDir(r.opts.BundledDir) // absent: nothing is bundled
		for _, entry := range entries {
			if name := entry.Name(); entry.IsDir() && !strings.HasPrefix(name, ".") {
				if _, taken := chosen[name]; !taken {
					add(r.fromBundle(name, only))
				}
			}
		}
	}
	if err := r.grant(chosen); err != nil {
		broken(filepath.Join(r.opts.PluginDir, ownersName), OriginUser, err)
	}
	return chosen
}

// Nearest returns the name that is most like the given one, or "" if none is
// like it.
func Nearest(name string, names []string) string {
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, candidate := range names {
		d := distance(strings.ToLower(name), candidate)
		if strings.HasPrefix(candidate, name) && len(name) > 1 {
			d = min(d, 1)
		}
		if d < bestDistance || d == bestDistance && best != "" && candidate < best {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to make b of a.
func distance(a, b string) int {
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}
