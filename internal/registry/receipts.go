package registry

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

// receipts is verified.json, by its path: what was verified before.
type receipts string

func (r *Registry) receipts() receipts {
	return receipts(filepath.Join(r.opts.ConfigDir, "plugins", "verified.json"))
}

// content is that of the file.
type content struct {
	Version int                `json:"verified"`
	Files   map[string]checked `json:"files"` // by path of the source
}

// checked says that source and copy had this hash.
type checked struct {
	SHA256 string   `json:"sha256"`
	Source identity `json:"source"`
	Copy   identity `json:"copy"`
	// Describe is the describe.json that a process of it was seen to agree with.
	Describe identity `json:"describe,omitzero"`
}

// read returns what was checked. A file that cannot be read costs a hash, no more.
func (r receipts) read() map[string]checked {
	var got content
	data, err := foreign.Read(string(r), foreign.Rule{Limit: maxSmall, Private: true})
	if err != nil || json.Unmarshal(data, &got) != nil || got.Version != 1 {
		return nil
	}
	return got.Files
}

// write writes down what was checked. Of two processes that do so at once
// one may lose its line, which costs a hash at the next start. A folder that
// cannot be written is no reason not to run.
func (r receipts) write(path string, c checked) {
	all := content{1, map[string]checked{path: c}}
	for other, known := range r.read() {
		if _, err := os.Lstat(other); err == nil && other != path {
			all.Files[other] = known
		}
	}
	data, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return
	}
	_ = writeOver(string(r), append(data, '\n'))
}
