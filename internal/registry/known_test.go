package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// To look for one agent gives what a look at all plugins gives, and reads no description of
// a bundled plugin of others.
func TestAgentIsAsAmongAll(t *testing.T) {
	for name, make := range map[string]func(*world){
		"bundled alone": func(*world) {},
		"installed":     func(w *world) { w.install("x", "1.0.0", "x1", "x2"); w.userLock(w.locked("x", "1.0.0")) },
		"claimed twice": func(w *world) { w.install("x", "1.0.0", "x1", "a1"); w.userLock(w.locked("x", "1.0.0")) },
		"taken over": func(w *world) {
			w.install("x", "1.0.0", "x1", "a1")
			w.userLock(w.locked("x", "1.0.0"))
			w.owners("[agents]\na1 = \"x\"\n")
		},
		"overridden": func(w *world) {
			w.opts.Overrides["a"] = filepath.Dir(w.plugin(filepath.Join(w.project, "build"), "a", "2.0.0", "a1", "a3"))
		},
		"a lock of dirt":  func(w *world) { w.userLock("dirt") },
		"a broken bundle": func(w *world) { w.write(filepath.Join(w.bundled, "b", describeName), "{", 0o644) },
		"no manifest":     func(w *world) { w.write(filepath.Join(w.bundled, "b", manifestName), "name = 1", 0o644) },
		"a manifest that names nothing": func(w *world) {
			w.write(filepath.Join(w.bundled, "b", manifestName), "manifest = 1\nname = \"b\"\nversion = \"1.0.0\"\n[protocol]\nmajor = [1]\n", 0o644)
		},
		"a manifest that names nothing, and another that wants its agent": func(w *world) {
			w.write(filepath.Join(w.bundled, "b", manifestName), "manifest = 1\nname = \"b\"\nversion = \"1.0.0\"\n[protocol]\nmajor = [1]\n", 0o644)
			w.install("x", "1.0.0", "x1", "b1")
			w.userLock(w.locked("x", "1.0.0"))
		},
		"a manifest with escapes, and another that wants its agent": func(w *world) {
			w.write(filepath.Join(w.bundled, "b", manifestName), "manifest = 1\nname = \"b\"\nversion = \"1.0.0\"\n[protocol]\nmajor = [1]\n[[agent]]\nid = \"\\u00621\"\n", 0o644)
			w.install("x", "1.0.0", "x1", "b1")
			w.userLock(w.locked("x", "1.0.0"))
		},
		"two installed": func(w *world) {
			w.install("x", "1.0.0", "x1")
			w.install("y", "1.0.0", "x2", "a1")
			w.userLock(w.locked("x", "1.0.0"), w.locked("y", "1.0.0"))
			w.owners("[agents]\na1 = \"y\"\n")
		},
		"two installed that want one agent": func(w *world) {
			w.install("x", "1.0.0", "x1", "x2")
			w.install("y", "1.0.0", "x2")
			w.userLock(w.locked("x", "1.0.0"), w.locked("y", "1.0.0"))
		},
		"installed, and then changed": func(w *world) {
			dir := filepath.Dir(w.install("x", "1.0.0", "x1"))
			w.userLock(w.locked("x", "1.0.0"))
			w.registry().Has("a1") // what it declares is known now
			w.plugin(dir, "x", "1.0.0", "x1", "a1")
		},
		"installed, by a project's lock with the hash of another": func(w *world) {
			w.install("x", "1.0.0", "x1")
			w.install("c", "1.0.0", "x2")
			w.userLock(w.locked("x", "1.0.0"), w.locked("c", "1.0.0"))
			w.registry().Has("a1")
			w.projectLock(strings.ReplaceAll(w.locked("x", "1.0.0"), `name = "x"`, `name = "c"`))
		},
		"what releases declare, in dirt": func(w *world) {
			w.install("x", "1.0.0", "x1")
			w.userLock(w.locked("x", "1.0.0"))
			w.write(declarationsOf(w.registry()).path, `{"declared":1,"agents":[]}`, 0o600)
		},
		"what releases declare, which anybody can write": func(w *world) {
			w.install("x", "1.0.0", "x1", "x2")
			w.install("y", "1.0.0", "x2", "y1")
			w.userLock(w.locked("x", "1.0.0"), w.locked("y", "1.0.0"))
			if runtime.GOOS == "windows" {
				return // anybody's are not told from the user's
			}
			w.registry().Has("a1")
			path := declarationsOf(w.registry()).path
			data, _ := os.ReadFile(path)
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "\"x2\",\n   \"y1\"", "\"y1\"")), 0o600); err != nil {
				w.t.Fatal(err)
			}
			if err := os.Chmod(path, 0o666); err != nil {
				w.t.Fatal(err)
			}
		},
		"what a chosen release declares, wrong": func(w *world) {
			w.install("x", "1.0.0", "x1", "a1")
			w.userLock(w.locked("x", "1.0.0"))
			w.owners("[agents]\na1 = \"x\"\n")
			w.registry().Has("b")
			path := declarationsOf(w.registry()).path
			data, _ := os.ReadFile(path)
			w.write(path, strings.ReplaceAll(string(data), "a1", "x3"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.bundle("a", "1.0.0", "a1", "a2")
			w.bundle("b", "1.0.0", "b1")
			w.bundle("c", "1.0.0", "c")
			make(w)
			agents := []string{"a", "a1", "a2", "a3", "b", "b1", "c", "x", "x1", "x2", "nobody", ""}
			for _, agent := range append(agents, agents...) { // what releases declare is known the second time
				say := func(p Plugin, found fmt.Stringer, err error) string {
					return fmt.Sprint(p.Name, p.Version, p.Origin, p.Trust, p.granted, found, err)
				}
				r := w.registry()
				p, a, err := r.Agent(agent)
				q, b, want := NewSet(w.registry().List()).Agent(agent)
				if got, want := say(p, a, err), say(q, b, want); got != want {
					t.Errorf("%s: %s\nwant %s", agent, got, want)
				}
				if has := w.registry().Has(agent); (has != nil) != (want == nil) {
					t.Errorf("%s: has %v, but error %v", agent, has, want)
				}
				if err == nil && name == "bundled alone" {
					for path := range r.read.byPath {
						if filepath.Base(path) == describeName && filepath.Dir(path) != p.Dir {
							t.Errorf("%s: %s was read", agent, path)
						}
					}
				}
			}
		})
	}
}
