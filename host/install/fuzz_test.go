package install

import (
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
