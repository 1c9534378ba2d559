//go:build linux

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"aead.dev/minisign"
	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// An installation on a disk that fills up at any moment leaves the old plugin or
// the new, whole, and nothing else.
func TestInstallOnFullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	root := t.TempDir()
	config := filepath.Join(root, "config")
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.MkdirAll(config, 0o700),
		unix.Mount("none", config, "tmpfs", 0, "mode=0700,size=2m"),
	)
	if errors.Is(err, unix.EPERM) {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(config, unix.MNT_DETACH) })

	_, key, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(config, "plugins")
	in := install.New(install.Options{Dir: plugins, Version: "0.4.0"})
	if err := in.AddTrust(install.Key{ID: "acme", Key: install.PublicKey(key), Names: []string{"acme"}}); err != nil {
		t.Fatal(err)
	}
	release := func(version string) install.Request {
		dir := filepath.Join(root, version)
		describe := fmt.Sprintf(`{"plugin":"acme","version":%q,"agents":[{"id":"acme"}]}`, version)
		binary := filepath.Join(root, "binary")
		script := append(fmt.Appendf(nil, "#!/bin/sh\necho '%s'\nexit\n", describe), bytes.Repeat([]byte(version+"\n"), 20_000)...)
		if err := os.WriteFile(binary, script, 0o755); err != nil {
			t.Fatal(err)
		}
		p := install.Package{
			Manifest: fmt.Appendf(nil, "manifest = 1\nname = \"acme\"\nversion = %q\nsummary = \"x\"\nlicense = \"MIT\"\n[protocol]\nmajor = [1]\n[[agent]]\nid = \"acme\"\n", version),
			Describe: []byte(describe), Binaries: map[string]string{install.Platform(): binary},
		}
		_, sums, err := p.Write(dir)
		if err == nil {
			err = install.WriteSignature(dir, install.Sign(key, "acme", version, sums.Bytes()))
		}
		if err != nil {
			t.Fatal(err)
		}
		place, err := in.Resolve(dir, "/")
		if err != nil {
			t.Fatal(err)
		}
		return install.Request{Place: place, Replace: true}
	}
	old, next := release("1.0.0"), release("1.1.0")
	if _, err := in.Install(context.Background(), old); err != nil {
		t.Fatal(err)
	}
	whole := func(where string) string {
		t.Helper()
		lock, err := install.ReadLock(in.LockFile())
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		entry := lock.Get("acme")
		if _, problems := in.Verify(*entry); len(problems) > 0 {
			t.Errorf("%s: %v", where, problems)
		}
		for _, p := range registry.New(registry.Options{PluginDir: plugins}).List() {
			if p.Err != nil {
				t.Errorf("%s: %v", where, p.Err)
			}
		}
		if left, _ := os.ReadDir(filepath.Join(plugins, "staging")); len(left) > 0 {
			t.Errorf("%s: staging holds %v", where, left)
		}
		return entry.Version
	}
	filler := filepath.Join(config, "filler")
	full, ended := 0, 0
	for room := 0; room <= 400<<10; room += 8 << 10 {
		where := fmt.Sprintf("with %d KiB free", room>>10)
		var st unix.Statfs_t
		if err := unix.Statfs(config, &st); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filler, make([]byte, max(0, int64(st.Bavail)*st.Bsize-int64(room))), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := in.Install(context.Background(), next)
		version := whole(where)
		switch {
		case err == nil:
			ended++
			if version != "1.1.0" {
				t.Errorf("%s: installed %s", where, version)
			}
		case errors.Is(err, pluginapi.CodeDiskFull):
			full++
		default:
			t.Errorf("%s: %v", where, err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if version == "1.1.0" {
			if _, err := in.Remove("acme", ""); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			if _, err := in.Install(context.Background(), old); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
		}
	}
	t.Logf("%d times the disk was full, %d times not", full, ended)
	if full < 5 || ended < 2 {
		t.Errorf("the room is not what decides")
	}
}
