package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// NoProfile is the name that stands for no profile.
const NoProfile = "none"

// ProfileOnly are what only a profile sets: elsewhere a flag does.
type ProfileOnly struct {
	Name        string // of the profile, if the user has chosen it
	MaxTurns    int
	MaxCost     float64
	MaxTokens   int64
	Allow, Deny []string
	Driver      string
}

// shared are the keys of a profile that mean what they mean outside; a project that names a
// profile gets no others of it.
var (
	shared  = []string{"agent", "model", "effort", "system_prompt", "tags", "timeout", "idle_timeout"}
	private = []string{"approve", "grace", "retry", "sync", "hooks.before_run", "hooks.after_run", "hooks.on_question", "hooks.timeout"}
)

// profileKeys are the other keys of a profile. They are private, too.
var profileKeys = []key{
	{"max_turns", false, count(func(s *Settings) *int { return &s.Only.MaxTurns })},
	{"max_cost", false, func(s *Settings, v *unstable.Node) error {
		b := Budget{}
		err := b.set("cost", v)
		s.Only.MaxCost = b.Cost
		return err
	}},
	{"max_tokens", false, func(s *Settings, v *unstable.Node) error {
		b := Budget{}
		err := b.set("tokens", v)
		s.Only.MaxTokens = b.Tokens
		return err
	}},
	{"allow", false, list(func(s *Settings) *[]string { return &s.Only.Allow })},
	{"deny", false, list(func(s *Settings) *[]string { return &s.Only.Deny })},
	{"driver", false, text(func(s *Settings) *string { return &s.Only.Driver })},
}

// setProfile sets a key of a profile.
func (s *Settings) setProfile(profile, field string, v *unstable.Node) error {
	of := profileKeys
	if slices.Contains(shared, field) || slices.Contains(private, field) {
		of = keys
	}
	i := slices.IndexFunc(of, func(k key) bool { return k.name == field })
	if i < 0 {
		names := slices.Concat(shared, private)
		for _, k := range profileKeys {
			names = append(names, k.name)
		}
		return fmt.Errorf("unknown key; the keys of a profile are %s", strings.Join(names, ", "))
	}
	p := s.Profiles[profile]
	if err := of[i].set(&p, v); err != nil {
		return err
	}
	s.Profiles[profile] = p
	return nil
}

// chosen is the profile that counts, and whether the user has chosen it.
func (s *Settings) chosen(named, project string) (profile string, trusted bool) {
	switch {
	case named != "":
		return named, true
	case project != "":
		return project, false
	}
	return s.Profile, true
}

// apply has a profile win over the rest of the user's file. One that the project has chosen
// gives nothing that a project may not set itself.
func (s *Settings) apply(named, project string) error {
	name, trusted := s.chosen(named, project)
	if name == "" || name == NoProfile {
		return nil
	}
	p, ok := s.Profiles[name]
	if !ok {
		return s.noProfile(name, trusted)
	}
	if p.Agent != "" && p.Agent != s.Agent {
		s.Agent, s.Model, s.Effort = p.Agent, "", "" // which were meant for another agent
	}
	over(&s.Model, p.Model)
	over(&s.Effort, p.Effort)
	over(&s.SystemPrompt, p.SystemPrompt)
	over(&s.Timeout, p.Timeout)
	over(&s.IdleTimeout, p.IdleTimeout)
	s.Tags = slices.Concat(s.Tags, p.Tags)
	if trusted {
		over(&s.Approve, p.Approve)
		over(&s.Grace, p.Grace)
		over(&s.Retry, p.Retry)
		over(&s.Sync, p.Sync)
		s.Hooks.over(p.Hooks)
		s.Only = p.Only
		s.Only.Name = name
	}
	return nil
}

func over[T comparable](to *T, value T) {
	var unset T
	if value != unset {
		*to = value
	}
}

func (s *Settings) noProfile(name string, trusted bool) error {
	who := ""
	if !trusted {
		who = ", which the project names,"
	}
	e := pluginapi.Errorf(pluginapi.CodeProfileNotFound, "the profile %s%s is not in config.toml", strconv.Quote(name), who)
	names := slices.Sorted(maps.Keys(s.Profiles))
	if near := registry.Nearest(name, names); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e.WithHint("add [profiles.NAME] to it; or go without one: --profile %s", NoProfile)
}
