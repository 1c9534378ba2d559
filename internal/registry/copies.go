package registry

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// UnusedCopies are the paths of copies of plugins that are not of a plugin as it
// is now, that keep does not want by their hash, and that are older than age; and
// those of copies that were never finished.
func (r *Registry) UnusedCopies(keep func(hash string) bool, age time.Duration) []string {
	current := map[string]bool{}
	for _, p := range r.List() {
		current[p.SHA256] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, known := range r.receipts().read() {
		if sameFile(path, known.Source) {
			current[known.SHA256] = true
		}
	}
	var unused []string
	entries, _ := os.ReadDir(r.runDir())
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < age {
			continue
		}
		name := e.Name()
		if hashRule.MatchString(name) && !current[name] && !keep(name) || strings.HasPrefix(name, ".copy-") {
			unused = append(unused, filepath.Join(r.runDir(), name))
		}
	}
	return unused
}

// RemoveCopies removes the copies of executables that left the store, but for those that
// keep wants by their hash, and those of plugins that are there still.
func (r *Registry) RemoveCopies(hashes []string, keep func(hash string) bool) error {
	current := map[string]bool{}
	for _, p := range r.List() {
		current[p.SHA256] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, hash := range hashes {
		if !hashRule.MatchString(hash) || current[hash] || keep(hash) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.runDir(), hash)); err != nil {
			return r.unwritable(err)
		}
	}
	return nil
}
