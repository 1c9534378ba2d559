package app

import (
	"slices"
	"strings"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
)

// Scope says which runs a command may see and control. The zero value is all runs.
type Scope struct {
	Limited bool
	Below   []string // runs below these, by id
	Runs    []string // these runs, by id
	Tag     string   // runs with this tag; empty: none
}

// Sees reports whether a run is within the scope.
func (s Scope) Sees(info host.RunInfo) bool {
	return !s.Limited || slices.ContainsFunc(s.Below, info.Below) || slices.Contains(s.Runs, info.ID) ||
		s.Tag != "" && slices.Contains(info.Tags, s.Tag)
}

// Inside returns the id of the run that the process belongs to; empty outside runs.
func (p *Process) Inside() string {
	list := p.Getenv(process.RunEnv)
	return list[strings.LastIndexByte(list, ':')+1:]
}

// scope is that of a command: inside a run, the runs below it.
func (p *Process) scope() Scope {
	if id := p.Inside(); id != "" {
		return Scope{Limited: true, Below: []string{id}}
	}
	return Scope{}
}
