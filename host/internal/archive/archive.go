// Package archive finds, indexes, limits and deletes the records of runs, and clears up
// what runs have left outside their folders.
package archive

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// Archive has the runs of a configuration folder, and knows where what they leave lies.
type Archive struct {
	Store     *store.Store
	Registry  *registry.Registry
	Log       hclog.Logger
	ConfigDir string
	// RuntimeDir and TempDir hold sockets and the runs' own folders.
	RuntimeDir, TempDir string
	// IndexProjects get an index of their own runs.
	IndexProjects []string
	// Subreaper: this process adopts what a dead shim has left.
	Subreaper bool

	// Keep is what is kept of runs that have ended.
	Keep Keep
	// Packer packs their journals.
	Packer record.Packer

	retaining sync.Mutex // held by the one Retain at work
}

var idRule = pattern.New(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// IsID reports whether a text is the id of a run, a ULID.
func IsID(text string) bool { return idRule.MatchString(text) }

// Find resolves what a user calls a run: its id, its name, or a unique start or
// end of the id of at least four characters.
func (a *Archive) Find(ref string) (*store.Run, error) {
	found := a.Store.Find(ref)
	if len(found) == 0 {
		var newest time.Time
		for _, id := range a.Store.List() {
			meta, err := a.Store.Run(id).ReadMeta()
			if err == nil && meta.Name == ref && (found == nil || meta.Created.After(newest)) {
				found, newest = []string{id}, meta.Created
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, record.NoRun(ref)
	case 1:
		return a.Store.Run(found[0]), nil
	}
	return nil, pluginapi.Errorf(pluginapi.CodeValidation, "%q names %d runs", ref, len(found)).WithHint("give more of the id: %s", strings.Join(found[:min(3, len(found))], ", "))
}
