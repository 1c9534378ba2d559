package registry

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// files are the manifests, descriptions and lists that were read, by path. A start looks for its agent more than once, and
// a server for each of a thousand runs: to read and parse them all each time is most of that. Nobody changes
// what was parsed.
type files struct {
	mu     sync.Mutex
	byPath map[string]*file
}

// file is one as it was read.
type file struct {
	identity identity
	read     time.Time
	data     []byte

	once   sync.Once
	parsed any
	err    error
}

// maxFiles is more than anybody has installed.
const maxFiles = 2000

// open returns a file, from before if it is the same one and nobody has changed it.
func (f *files) open(path string, rule foreign.Rule) (*file, error) {
	now := time.Now()
	opened, err := foreign.Open(path, rule)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	is, err := identify(opened)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	known := f.byPath[path]
	f.mu.Unlock()
	if known != nil && known.identity == is && known.settled() {
		return known, nil
	}
	data, err := foreign.ReadOpen(opened, path, rule)
	if err != nil {
		return nil, err
	}
	fresh := &file{identity: is, read: now, data: data}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byPath == nil || len(f.byPath) == maxFiles {
		f.byPath = map[string]*file{}
	}
	f.byPath[path] = fresh
	return fresh, nil
}

// settled says that each later change of the file shows in its identity.
func (f *file) settled() bool {
	return f.read.Sub(time.Unix(0, max(f.identity.Ctime, f.identity.Mtime))) >= racy
}

// parsed is what is in a file, which is parsed once, and the error of that.
func parsed[T any](f *file, parse func(data []byte) (T, error)) (T, error) {
	f.once.Do(func() { f.parsed, f.err = parse(f.data) })
	return f.parsed.(T), f.err
}

// manifest is what is in one; it is there, as far as it goes, beside an error.
func (f *file) manifest() (*Manifest, error) {
	return parsed(f, func(data []byte) (*Manifest, error) {
		m := &Manifest{}
		return m, toml.Unmarshal(data, m)
	})
}

// description is what is in one.
func (f *file) description() (*pluginapi.Description, error) { return parsed(f, parseDescription) }

// writeOver writes a file beside the one that it then replaces.
func writeOver(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return replace(temp.Name(), path)
}
