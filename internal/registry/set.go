package registry

import (
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Set are plugins, by the agents that they declare.
type Set struct {
	plugins   []Plugin // by precedence
	declaring map[string][]*Plugin
	lock      *Plugin // the first one that stands for a lock that cannot be read
}

// NewSet makes a set of one look at the disk, in whatever order.
func NewSet(plugins []Plugin) *Set {
	s := &Set{plugins: slices.Clone(plugins), declaring: map[string][]*Plugin{}}
	slices.SortStableFunc(s.plugins, func(a, b Plugin) int { return int(a.rank) - int(b.rank) })
	for i := range s.plugins {
		p := &s.plugins[i]
		if p.lockFile && s.lock == nil {
			s.lock = p
		}
		for _, id := range p.declared() {
			if of := s.declaring[id]; len(of) == 0 || of[len(of)-1] != p {
				s.declaring[id] = append(of, p)
			}
		}
	}
	return s
}

// Serving returns the plugin that serves an agent; nil if none does that can be used.
func (s *Set) Serving(id string) *Plugin {
	p, err := s.choice(id)
	if err != nil || p == nil || p.Err != nil {
		return nil
	}
	return p
}

// choice returns the plugin that an agent belongs to, nil if none declares it.
func (s *Set) choice(id string) (*Plugin, error) {
	p, err := s.owner(id)
	// What it would have chosen is not known, so nothing of lower precedence may
	// silently take its place.
	if s.lock != nil && (p == nil || s.lock.rank <= p.rank) {
		return s.lock, s.lock.Err
	}
	return p, err
}

// owner returns the plugin that an agent belongs to, nil if none declares it: the one
// that the user chose by --take-over, else the bundled one, else the only one. Two of
// which neither is chosen are an error.
func (s *Set) owner(id string) (*Plugin, error) {
	declaring := s.declaring[id]
	for _, p := range declaring {
		if p.Granted(id) {
			return p, nil
		}
	}
	for _, p := range declaring {
		if p.Origin == OriginBundled {
			return p, nil
		}
	}
	switch len(declaring) {
	case 0:
		return nil, nil
	case 1:
		return declaring[0], nil
	}
	var names []string
	for _, p := range declaring {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "agent %s is declared by the plugins %s; it can belong to one only",
		id, strings.Join(names, " and ")).
		WithHint("remove one of them, or choose: amux plugin install SOURCE --take-over %s", id)
}

// Agent returns the plugin that serves an agent, and what it says
// about it. An agent belongs to one plugin: see Claim. The error is that of the plugin
// it belongs to if that cannot be used, and AGENT_NOT_FOUND with the nearest name if
// there is none.
func (s *Set) Agent(name string) (Plugin, *pluginapi.Agent, error) {
	serving, err := s.choice(name)
	switch {
	case err != nil && serving != nil:
		return *serving, nil, err
	case err != nil:
		return Plugin{}, nil, err
	case serving == nil:
		return s.without(name)
	case serving.Err != nil:
		return *serving, nil, serving.Err
	}
	i := slices.IndexFunc(serving.Description.Agents, func(a *pluginapi.Agent) bool { return a.Id == name })
	return *serving, serving.Description.Agents[i], nil
}

// Has returns what is said of an agent; nil if no plugin that can be used serves it.
func (s *Set) Has(name string) *pluginapi.Agent {
	_, agent, err := s.Agent(name)
	if err != nil {
		return nil
	}
	return agent
}

// without says why there is no agent of that name.
func (s *Set) without(name string) (Plugin, *pluginapi.Agent, error) {
	var known []string
	var broken *Plugin
	for i, p := range s.plugins {
		if p.Err == nil {
			known = append(known, p.declared()...)
			continue
		}
		if p.Name == name {
			return p, nil, p.Err // its manifest may not say what it serves
		}
		if broken == nil {
			broken = &s.plugins[i]
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
