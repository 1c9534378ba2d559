package settings

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Place is [places.NAME]: another machine, or a container, where runs can be.
type Place struct {
	SSH        string
	Docker     string   // image
	Engine     string   // docker if empty, podman
	Args       []string // of its run command
	Kubernetes string   // image
	Program    string   // absolute
	Options    map[string]string
	Folder     string
	Env        []string
	Alone      time.Duration
}

// kinds is how many of the keys are set of which a place has one.
func (p Place) kinds() (n int) {
	for _, kind := range []string{p.SSH, p.Docker, p.Kubernetes, p.Program} {
		if kind != "" {
			n++
		}
	}
	return n
}

var placeName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// place sets a key of [places.NAME], or of [places.NAME.options].
func (s *Settings) place(path string, v *unstable.Node) error {
	name, field, _ := strings.Cut(path, ".")
	if s.Places == nil {
		s.Places = map[string]Place{}
	}
	p := s.Places[name]
	text := func(to *string) error {
		if v.Kind != unstable.String || len(v.Data) == 0 {
			return errors.New("expected a string in quotes")
		}
		*to = string(v.Data)
		return nil
	}
	var err error
	var read Settings
	option, isOption := strings.CutPrefix(field, "options.")
	switch {
	case isOption:
		var value string
		if err = text(&value); err == nil {
			if p.Options == nil {
				p.Options = map[string]string{}
			}
			p.Options[option] = value
		}
	case field == "ssh":
		err = text(&p.SSH)
	case field == "docker":
		err = text(&p.Docker)
	case field == "kubernetes":
		err = text(&p.Kubernetes)
	case field == "engine":
		err = text(&p.Engine)
	case field == "args":
		err = list(func(s *Settings) *[]string { return &s.Tags })(&read, v)
		p.Args = read.Tags
	case field == "program":
		if err = text(&p.Program); err == nil && !filepath.IsAbs(p.Program) {
			err = errors.New("expected the absolute path of a helper program")
		}
	case field == "folder":
		err = text(&p.Folder)
	case field == "env":
		err = list(func(s *Settings) *[]string { return &s.Tags })(&read, v)
		p.Env = read.Tags
	case field == "alone":
		err = duration(func(s *Settings) *time.Duration { return &s.Timeout }, false)(&read, v)
		p.Alone = read.Timeout
	default:
		err = errors.New("unknown key; the keys are ssh, docker, engine, args, kubernetes, program, folder, env, alone and those of the table options")
	}
	s.Places[name] = p
	return err
}
