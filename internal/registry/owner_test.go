package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

func (w *world) owners(content string) {
	w.write(filepath.Join(w.config, "plugins", ownersName), content, 0o600)
}

// An agent belongs to one plugin, whatever the others declare.
func TestOwner(t *testing.T) {
	t.Parallel()
	claude := []Claim{{Agent: "claude", By: "claude", Others: []string{"whisper"}}}
	for _, test := range []struct {
		name   string
		lay    func(w *world)
		by     string // plugin that serves claude
		code   pluginapi.Code
		claims []Claim
	}{
		{"bundled beside installed", func(w *world) {
			w.install("whisper", "1.0.0", "claude", "whisper")
			w.userLock(w.locked("whisper", "1.0.0"))
		}, "claude", "", claude},
		{"bundled beside one of a project", func(w *world) {
			w.install("whisper", "1.0.0", "claude")
			w.projectLock(entry("whisper", "1.0.0"))
		}, "claude", "", claude},
		{"bundled beside an override", func(w *world) {
			w.opts.Overrides["whisper"] = w.plugin(filepath.Join(w.project, "dev"), "whisper", "1.0.0", "claude")
		}, "claude", "", claude},
		{"bundled beside a broken one", func(w *world) {
			os.Remove(w.install("whisper", "1.0.0", "claude"))
			w.userLock(w.locked("whisper", "1.0.0"))
		}, "claude", "", claude},
		{"a broken bundled one keeps its agent", func(w *world) {
			os.Remove(filepath.Join(w.bundled, "claude", executableName("claude")))
			w.install("whisper", "1.0.0", "claude")
			w.userLock(w.locked("whisper", "1.0.0"))
		}, "", pluginapi.CodePluginInvalid, claude},
		{"taken over", func(w *world) {
			w.install("whisper", "1.0.0", "claude")
			w.userLock(w.locked("whisper", "1.0.0"))
			w.owners("[agents]\nclaude = \"whisper\"\n")
		}, "whisper", "", []Claim{{Agent: "claude", By: "whisper", TakenOver: true, Others: []string{"claude"}}}},
		{"taken over by what is gone", func(w *world) { w.owners("[agents]\nclaude = \"whisper\"\n") }, "claude", "", nil},
		{"taken over by what does not declare it", func(w *world) {
			w.install("whisper", "1.0.0", "whisper")
			w.userLock(w.locked("whisper", "1.0.0"))
			w.owners("[agents]\nclaude = \"whisper\"\n")
		}, "claude", "", nil},
		{"who took it over cannot be read", func(w *world) { w.owners("[agents]\nclaude = 7\n") }, "", pluginapi.CodeConfig, nil},
		{"replaced by name", func(w *world) {
			w.install("claude", "2.0.0", "claude")
			w.userLock(w.locked("claude", "2.0.0"))
		}, "claude", "", nil},
		{"two of which none is chosen", func(w *world) {
			os.RemoveAll(w.bundled)
			w.install("murmur", "1.0.0", "claude")
			w.install("whisper", "1.0.0", "claude")
			w.userLock(w.locked("murmur", "1.0.0"), w.locked("whisper", "1.0.0"))
		}, "", pluginapi.CodePluginUntrusted, []Claim{{Agent: "claude", Others: []string{"murmur", "whisper"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.bundle("claude", "1.0.0", "claude")
			test.lay(w)
			plugins := w.registry().List()
			p, _, err := NewSet(plugins).Agent("claude")
			if test.code != "" {
				if e := pluginapi.AsError(err); e == nil || e.Code != test.code {
					t.Errorf("got %v of %s", err, p.Name)
				}
			} else if err != nil || p.Name != test.by {
				t.Errorf("served by %q, %v", p.Name, err)
			}
			if diff := cmp.Diff(test.claims, Claims(plugins)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An id that looks like another agent's is invalid, and so is an id in capitals.
func TestAgentIDs(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"Claude"}, {"сlaude"}, {"claude\u200b"}, {"claude "}, {"clau--de"}, {"ok", "ok"}, {""}} {
		w := newWorld(t)
		w.plugin(filepath.Join(w.project, "dev"), "whisper", "1.0.0", ids...)
		w.opts.Overrides["whisper"] = filepath.Join(w.project, "dev")
		if p := w.registry().List()[0]; p.Err == nil || !strings.Contains(p.Err.Error(), "agent id") {
			t.Errorf("%q: %v", ids, p.Err)
		}
	}
}

// A plugin is started for as long as the key that signed it is trusted.
func TestTrustNow(t *testing.T) {
	t.Parallel()
	const key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
	for _, test := range []struct {
		name, trust, signer string // signer of the user's lock
		project             bool
		want                string // trust; "" for a refusal
	}{
		{"trusted", "[[key]]\nid = \"acme\"\nkey = \"" + key + "\"\nnames = [\"acme\"]\n", key, false, "signed by acme (" + short(key) + ")"},
		{"key in minisign's two lines", "[[key]]\nid = \"acme\"\nkey = \"untrusted comment: x\\n" + key + "\\n\"\nnames = [\"acme\"]\n", key, false, "signed by acme (" + short(key) + ")"},
		{"trust removed", "", key, false, ""},
		{"trusted for others", "[[key]]\nid = \"acme\"\nkey = \"" + key + "\"\nnames = [\"other-*\"]\n", key, false, ""},
		{"accepted by its checksum", "", "", false, TrustPinned},
		{"trust removed, chosen by a project", "", key, true, ""},
		{"accepted by its checksum, chosen by a project", "", "", true, TrustPinned},
		{"trust file is broken", "[[key]\n", key, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.install("acme", "1.0.0", "acme")
			h1 := w.receipt(filepath.Join(w.config, "plugins", "store", "acme", "1.0.0", platform()), key)
			w.userLock(entry("acme", "1.0.0") + "signer = \"" + test.signer + "\"\nh1 = { " + platform() + " = \"" + h1 + "\" }\n")
			if test.project {
				w.projectLock(entry("acme", "1.0.0"))
			}
			w.write(filepath.Join(w.config, "plugins", trustName), test.trust, 0o600)
			r := w.registry()
			p := r.List()[0]
			if test.want == "" {
				if _, err := r.Verify(p); err == nil {
					t.Errorf("it is started, as %q", p.Trust)
				}
				if _, _, err := r.Agent("acme"); pluginapi.AsError(err).Code == pluginapi.CodeAgentNotFound {
					t.Error("its agent is said not to exist")
				}
				return
			}
			if p.Err != nil || p.Trust != test.want {
				t.Errorf("got %q, %v", p.Trust, p.Err)
			}
		})
	}
}

func TestExtraFiles(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{"extra.so", "sub/extra.so", "SHA256SUMS.old"} {
		w := newWorld(t)
		exe := w.install("acme", "1.0.0", "acme")
		w.userLock(w.locked("acme", "1.0.0"))
		if p := w.registry().List()[0]; p.Err != nil {
			t.Fatal(p.Err)
		}
		w.write(filepath.Join(filepath.Dir(exe), extra), "x", 0o600)
		if p := w.registry().List()[0]; p.Err == nil || !strings.Contains(p.Err.Error(), filepath.FromSlash(extra)) {
			t.Errorf("%s: %v", extra, p.Err)
		}
	}
}

// The copies of what has left the store go with it, but for those that are in use.
func TestRemoveCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var copies []Verified
	for _, name := range []string{"acme", "kept", "used"} {
		exe := w.install(name, "1.0.0", name)
		w.userLock(w.locked(name, "1.0.0"))
		v, err := w.registry().Verify(w.registry().List()[0])
		if err != nil {
			t.Fatal(err)
		}
		copies = append(copies, v)
		if name != "kept" {
			os.RemoveAll(filepath.Dir(exe))
		}
	}
	w.userLock(w.locked("kept", "1.0.0"))
	var hashes []string
	for _, v := range copies {
		hashes = append(hashes, v.SHA256)
	}
	if err := w.registry().RemoveCopies(append(hashes, "..", ""), func(hash string) bool { return hash == hashes[2] }); err != nil {
		t.Fatal(err)
	}
	for i, there := range []bool{false, true, true} {
		if _, err := os.Stat(copies[i].Path); (err == nil) != there {
			t.Errorf("copy %d: %v", i, err)
		}
	}
}
