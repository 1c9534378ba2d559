package registry

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

// declarations are declared.json: which agents installed releases declare, by the hash over the files
// of each, which a lock has too. What such files say never changes, so that a look for one agent reads
// those of no other. They alone say it: what the file lacks is read from them.
type declarations struct {
	path string
	read *files
}

func declarationsOf(r *Registry) declarations {
	return declarations{filepath.Join(r.opts.ConfigDir, "plugins", "declared.json"), &r.read}
}

// declaredContent is that of the file.
type declaredContent struct {
	Version int                 `json:"declared"`
	Agents  map[string][]string `json:"agents"` // ids by h1
}

// known returns ids by h1. A file that cannot be read costs a look at the releases, no more.
func (d declarations) known() map[string][]string {
	f, err := d.read.open(d.path, declaredRule)
	if err != nil {
		return nil
	}
	ids, _ := parsed(f, parseDeclared)
	return ids
}

// declaredRule is for what nobody else may say.
var declaredRule = foreign.Rule{Limit: maxSmall, Private: true}

func parseDeclared(data []byte) (map[string][]string, error) {
	var got declaredContent
	if err := json.Unmarshal(data, &got); err != nil || got.Version != 1 {
		return nil, err
	}
	return got.Agents, nil
}

// add writes down what some releases declare. Of two processes that do so at once one may lose
// its lines, which the next start finds missing.
func (d declarations) add(fresh map[string][]string) {
	for h1, ids := range d.known() {
		if len(fresh) >= maxFiles {
			break
		}
		if _, ok := fresh[h1]; !ok {
			fresh[h1] = ids
		}
	}
	data, err := json.MarshalIndent(declaredContent{1, fresh}, "", " ")
	if err == nil && len(data) < maxSmall {
		_ = writeOver(d.path, append(data, '\n'))
	}
}

// search is a look at the disk for one agent or, with an empty id, for all.
type search struct {
	id    string
	owner string // the plugin that the user chose for the agent; "": none
	all   bool   // read every plugin, whatever is known
	known func() map[string][]string
	fresh map[string][]string // what was read and was not known
}

// passes reports that the release of a lock's entry does not declare the agent that is looked for. Of one that is not as it
// was installed this says nothing, but such a one serves no agent.
func (s *search) passes(entry lockEntry) bool {
	if s.id == "" || s.all || entry.Link != "" || entry.Name == s.owner {
		return false
	}
	ids, ok := s.known()[entry.h1()]
	return ok && !slices.Contains(ids, s.id)
}

// learn keeps what a plugin declares that was found to be what the lock's entry names.
func (s *search) learn(entry lockEntry, p Plugin) {
	h1 := entry.h1()
	if s.id == "" || p.Err != nil || p.files == nil || h1 == "" {
		return
	}
	if _, ok := s.known()[h1]; !ok {
		s.fresh[h1] = append(p.declared(), p.named()...)
	}
}

// h1 is the hash over the files of the release for this platform.
func (e lockEntry) h1() string { return e.H1[runtime.GOOS+"_"+runtime.GOARCH] }
