package install

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

// refused wants that an error is typed and one short line.
func refused(t *testing.T, err error) {
	t.Helper()
	e := pluginapi.AsError(err)
	if e.Code == pluginapi.CodeInternal || len(e.Error()) > 1500 || strings.Contains(e.Error(), "\n") {
		t.Errorf("%s: %q", e.Code, e.Error())
	}
}

// What a lock says survives being written and read again; what is no lock is refused.
func FuzzParseLock(f *testing.F) {
	f.Add([]byte("lock = 1\n[[plugin]]\nname = \"others\"\nversion = \"0.1.0\"\nsource = \"gh:a/b\"\n[plugin.h1]\nlinux_amd64 = \"h1:x\"\n"))
	f.Add([]byte("lock = 1\n[[plugin]]\nname = \"../others\"\nversion = \"0.1.0\"\n"))
	f.Add([]byte("lock = \"x\"\n"))
	f.Add([]byte(strings.Repeat("a.", 100) + "a = 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := parseLock("plugins.lock", data, nil)
		if err != nil {
			refused(t, err)
			return
		}
		for _, p := range lock.Plugins {
			if CheckName(p.Name) != nil || checkVersion(p.Version) != nil {
				t.Errorf("a lock names %q %q", p.Name, p.Version)
			}
		}
		again, err := parseLock("plugins.lock", lock.Bytes(), nil)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, lock.Bytes())
		}
		if d := cmp.Diff(lock.Bytes(), again.Bytes()); d != "" {
			t.Error(d)
		}
	})
}

// A manifest comes from an archive or a mirror.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte("manifest = 1\nname = \"x\"\nversion = \"1.0.0\"\nsummary = \"s\"\nlicense = \"MIT\"\n[protocol]\nmajor = [1]\n[[agent]]\nid = \"x\"\n"))
	f.Add([]byte("manifest = 9\n"))
	f.Add([]byte("name = [1]\nlicence = \"MIT\"\n"))
	f.Add([]byte(strings.Repeat("a.", 100) + "a = 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, unknown, err := ParseManifest("amux-plugin.toml", data)
		if err != nil {
			refused(t, err)
			return
		}
		if CheckName(m.Name) != nil || checkVersion(m.Version) != nil {
			t.Errorf("a manifest names %q %q", m.Name, m.Version)
		}
		for _, line := range unknown {
			if len(line) > 400 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
	})
}

// Sums, receipts, descriptions and keys come with a release, or lie beside a plugin.
func FuzzReleaseFiles(f *testing.F) {
	hash := strings.Repeat("0a", 32)
	f.Add([]byte(hash + "  amux-plugin-x_1.0.0_linux_amd64.tar.gz\n"))
	f.Add([]byte(`{"receipt":1,"name":"x","version":"1.0.0"}`))
	f.Add([]byte(`{"plugin":"x","version":"1.0.0","protocol":{"major":1},"agents":[{"id":"x"}]}`))
	f.Add([]byte("untrusted comment: minisign public key 1\nRWQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"))
	f.Add([]byte(strings.Repeat(`{"a":`, 20000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ParseSums(data); err != nil {
			refused(t, err)
		}
		if _, err := parseReceipt("receipt.json", data); err != nil {
			refused(t, err)
		}
		if _, err := ParseDescription("describe.json", data); err != nil {
			refused(t, err)
		}
		if _, err := ParsePublicKey(string(data)); err != nil {
			refused(t, err)
		}
	})
}

// trust.toml, sources.toml and agents.toml say whom a user trusts: what cannot be read is refused, and
// what is read allows what it says.
func FuzzTrustFiles(f *testing.F) {
	f.Add([]byte("[[key]]\nid = \"acme\"\nkey = \"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"\nnames = [\"acme\", \"acme-*\"]\n"))
	f.Add([]byte("[[key]]\nid = \"acme\"\nkey = \"x\"\n"))
	f.Add([]byte("[agents]\nclaude = \"acme\"\n"))
	f.Add([]byte("[[mirror]]\nroot = \"/srv/plugins\"\ninclude = [\"acme-*\"]\n"))
	f.Add([]byte("[[mirror]]\nroot = \"http://x\"\nexclude = [\"[\"]\n"))
	f.Add([]byte("[agents]\n\"\\u202e\" = \"..\"\n"))
	f.Add([]byte(strings.Repeat("a.", 100) + "a = 1"))
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	d := &Folder{dir: dir}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{trustName, ownersName} {
			if err := os.WriteFile(d.path(name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if keys, err := d.Trust(); err != nil {
			refused(t, err)
		} else {
			for _, key := range keys {
				if _, err := ParsePublicKey(key.Key); err != nil || CheckName(key.ID) != nil || len(key.Names) == 0 {
					t.Errorf("%+v is trusted: %v", key, err)
				}
			}
		}
		sources := filepath.Join(dir, SourcesName)
		if err := os.WriteFile(sources, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if mirrors, err := ReadMirrors(sources); err != nil {
			refused(t, err)
		} else {
			for _, m := range mirrors {
				if CheckMirrorRoot(m.Root) != nil {
					t.Errorf("%+v is a mirror", m)
				}
			}
		}
		owners, err := d.readOwners()
		if err != nil {
			refused(t, err)
			return
		}
		if err := os.Remove(d.path(ownersName)); err != nil {
			t.Fatal(err)
		}
		if err := d.writeOwners(owners); err != nil {
			t.Fatal(err)
		}
		again, err := d.readOwners()
		if err != nil || !maps.Equal(owners, again) {
			t.Errorf("%q became %q, %v", owners, again, err)
		}
	})
}

// What a user types for a plugin, and what a lock has recorded, names a place or is
// refused with the way out.
func FuzzResolve(f *testing.F) {
	for _, text := range []string{"gh:acme/acme@1.0.0", "https://x.y/amux-plugin-acme_1.0.0_linux_amd64.tar.gz#sha256=" + strings.Repeat("a", 64), "acme@^1", "./x", "/nowhere", "http://x", "file:/x", "gh:../..@", "\x00", "https://a b/", "/\n", strings.Repeat("h", 1000) + ":x"} {
		f.Add(text)
	}
	cwd := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		s := &Sources{mirrors: []Mirror{{Root: cwd, Include: []string{"*"}}}}
		place, err := s.Resolve(text, cwd)
		if err != nil {
			refused(t, err)
		} else if place.Link == "" && place.Source == nil {
			t.Errorf("%q is no place", text)
		}
		if source, err := s.Reopen("acme", text); err == nil && source == nil {
			t.Errorf("%q is no source", text)
		} else if err != nil {
			refused(t, err)
		}
	})
}
