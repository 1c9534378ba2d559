package install

import (
	"encoding/json"
	"time"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

// knownName is the file that says which plugins a person has let run.
const knownName = "known.json"

// known is known.json: when each was let run, by plugin and what vouches for it.
type known struct {
	Plugins map[string]time.Time `json:"plugins"`
}

func (d *Folder) readKnown() known {
	var got known
	if data, err := foreign.Read(d.path(knownName), foreign.Rule{Limit: maxSmall, Private: true}); err == nil {
		_ = json.Unmarshal(data, &got) // a spoilt file is an empty one: they are asked again
	}
	if got.Plugins == nil {
		got.Plugins = map[string]time.Time{}
	}
	return got
}

// Known reports whether a person has let a plugin run that this key signed, or that has
// this hash.
func (d *Folder) Known(name, identity string) bool {
	_, ok := d.readKnown().Plugins[name+" "+identity]
	return ok
}

// Remember notes that a person has let it run.
func (d *Folder) Remember(name, identity string) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	got := d.readKnown()
	got.Plugins[name+" "+identity] = time.Now().UTC().Truncate(time.Second)
	data, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		return err
	}
	return ReplaceFile(d.path(knownName), append(data, '\n'))
}
