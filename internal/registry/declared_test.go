package registry

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Of a hundred releases a start reads the one that it needs. What they declare is read again when
// that is lost, when a new one comes, and where everything has to be verified.
func TestReleasesOfOthersAreNotRead(t *testing.T) {
	w := newWorld(t)
	w.bundle("a", "1.0.0", "a1")
	w.install("x", "1.0.0", "x1")
	w.install("y", "1.0.0", "y1")
	w.userLock(w.locked("x", "1.0.0"), w.locked("y", "1.0.0"))
	reads := func(agent string, want ...string) {
		t.Helper()
		r := w.registry()
		if r.Has(agent) == nil {
			t.Errorf("there is no %s", agent)
		}
		read := map[string]bool{}
		for path := range r.read.byPath {
			if rel, err := filepath.Rel(filepath.Join(w.config, "plugins", "store"), path); err == nil && filepath.IsLocal(rel) {
				read[rel[:1]] = true
			}
		}
		if got := slices.Sorted(maps.Keys(read)); !slices.Equal(got, want) {
			t.Errorf("for %s %v were read, want %v", agent, got, want)
		}
	}
	reads("a1", "x", "y")
	reads("a1")
	reads("y1", "y")
	w.install("z", "1.0.0", "z1")
	w.userLock(w.locked("x", "1.0.0"), w.locked("y", "1.0.0"), w.locked("z", "1.0.0"))
	reads("z1", "z")
	reads("x1", "x")
	if err := os.Remove(declarationsOf(w.registry()).path); err != nil {
		t.Fatal(err)
	}
	reads("x1", "x", "y", "z")
	reads("x1", "x")
	stays := func(what string) {
		t.Helper()
		before, err := os.Stat(declarationsOf(w.registry()).path)
		if err != nil {
			t.Fatal(err)
		}
		w.registry().Has("x1")
		if after, err := os.Stat(declarationsOf(w.registry()).path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: declared.json is written though all is known: %v", what, err)
		}
	}
	w.opts.AlwaysVerify = true
	reads("x1", "x", "y", "z")
	stays("everything is verified")
	w.opts.AlwaysVerify = false
	w.projectLock(w.locked("x", "1.0.0"), w.locked("y", "1.0.0"))
	w.userLock()
	reads("x1", "x")
	stays("only a project's lock names plugins")
}
