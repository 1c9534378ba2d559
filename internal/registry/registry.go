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

// Agent returns the plugin that serves an agent, and what it says about it; errors are those of Set.Agent.
func (r *Registry) Agent(name string) (Plugin, *pluginapi.Agent, error) {
	if p, agent, err := known(r, name); err == nil {
		return p, agent, nil
	}
	return NewSet(r.List()).Agent(name) // the error is about all of them
}

// Has returns what is said of an agent; nil if no plugin that can be used serves it.
func (r *Registry) Has(name string) *pluginapi.Agent {
	_, agent, err := known(r, name)
	if err != nil {
		return nil
	}
	return agent
}

// known is r.Agent without the descriptions of plugins whose manifest does not name
// the agent: to parse them all is a good part of a start.
func known(r *Registry, name string) (Plugin, *pluginapi.Agent, error) {
	return NewSet(slices.Collect(maps.Values(r.choose(name)))).Agent(name)
}

// choose picks one plugin for each name. only is the id of the one agent that is looked for,
// or empty: the descriptions of plugins that name other agents are not read then.
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
	owners, ownersErr := r.owners()
	looked := &search{
		id: only, owner: owners[only], all: r.opts.AlwaysVerify,
		known: sync.OnceValue(declarationsOf(r).known), fresh: map[string][]string{},
	}
	var users *lockFile
	var usersErr error
	userPath := filepath.Join(r.opts.PluginDir, lockName)
	if r.opts.PluginDir != "" {
		users, usersErr = r.userLock(userPath)
	}
	if r.opts.ProjectDir != "" {
		path := filepath.Join(r.opts.ProjectDir, ".agent-mux", lockName)
		if lock, err := r.projectLock(path); err != nil {
			broken(path, OriginProject, err)
		} else {
			r.fromLock(lock, path, OriginProject, users, looked, chosen)
		}
	}
	if usersErr != nil {
		broken(userPath, OriginUser, usersErr)
	} else if users != nil {
		r.fromLock(users, userPath, OriginUser, users, looked, chosen)
	}
	if len(looked.fresh) > 0 {
		declarationsOf(r).add(looked.fresh)
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
	for id, name := range owners {
		if p, ok := chosen[name]; ok {
			p.granted = append(p.granted, id)
			chosen[name] = p
		}
	}
	if ownersErr != nil {
		broken(filepath.Join(r.opts.PluginDir, ownersName), OriginUser, ownersErr)
	}
	return chosen
}
