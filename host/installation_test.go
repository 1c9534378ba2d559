//go:build unix

package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// installed makes what make install makes, and returns the folder of the programs and PATH.
func installed(t *testing.T) (dir, path string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, path = filepath.Join(root, "lib", "amux"), filepath.Join(root, "bin")
	err = errors.Join(os.MkdirAll(filepath.Join(dir, "plugins"), 0o755), os.Mkdir(path, 0o755),
		os.WriteFile(filepath.Join(dir, "amux"), []byte("#!/bin/false\n"), 0o755), os.WriteFile(filepath.Join(dir, "amux-shim"), nil, 0o755),
		os.Symlink(filepath.Join(dir, "amux"), filepath.Join(path, "amux")))
	if err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func TestFindsTheInstallationOnPath(t *testing.T) {
	t.Parallel()
	dir, path := installed(t)
	h, err := New(Options{ConfigDir: t.TempDir(), Env: []string{"PATH=/nowhere:" + path}})
	if err != nil {
		t.Fatal(err)
	}
	if h.opts.ShimPath != filepath.Join(dir, "amux-shim") || h.opts.BundledDir != filepath.Join(dir, "plugins") {
		t.Errorf("it takes %s and %s", h.opts.ShimPath, h.opts.BundledDir)
	}
	// What the caller names stays.
	h, err = New(Options{ConfigDir: t.TempDir(), Env: []string{"PATH=" + path}, BundledDir: "/elsewhere"})
	if err != nil || h.opts.BundledDir != "/elsewhere" || h.opts.ShimPath != filepath.Join(dir, "amux-shim") {
		t.Errorf("%v; it takes %+v", err, h)
	}
	if _, err := New(Options{ConfigDir: t.TempDir(), Env: []string{"PATH=/nowhere"}, BundledDir: "/elsewhere", ShimPath: "/elsewhere/amux-shim"}); err != nil {
		t.Errorf("nothing is looked for if both are named: %v", err)
	}
}

func TestRefusesAnInstallationOnPath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir, path string) error
		code   pluginapi.Code
		says   string
	}{
		"none": {func(_, path string) error { return os.Remove(filepath.Join(path, "amux")) }, pluginapi.CodeConfig, "amux is not installed: no amux-shim in "},
		"no shim": {func(dir, _ string) error { return os.Remove(filepath.Join(dir, "amux-shim")) }, pluginapi.CodeConfig,
			"/bin/amux is (install amux"},
		"a folder that others write": {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, pluginapi.CodePluginUntrusted, "lib/amux: other users may write it"},
		"plugins that others write":  {func(dir, _ string) error { return os.Chmod(dir+"/plugins", 0o777) }, pluginapi.CodePluginUntrusted, "lib/amux/plugins: other users may write it"},
		"a shim that others write":   {func(dir, _ string) error { return os.Chmod(dir+"/amux-shim", 0o777) }, pluginapi.CodePluginUntrusted, "amux-shim: other users may write it"},
		"a shim that is a folder": {func(dir, _ string) error {
			return errors.Join(os.Remove(dir+"/amux-shim"), os.Mkdir(dir+"/amux-shim", 0o700))
		}, pluginapi.CodePluginUntrusted, "amux-shim: it is a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := installed(t)
			if err := c.change(dir, path); err != nil {
				t.Fatal(err)
			}
			_, err := New(Options{ConfigDir: t.TempDir(), Env: []string{"PATH=" + path}})
			if e := pluginapi.AsError(err); e == nil || e.Code != c.code || !strings.Contains(e.Error()+" ("+e.Hint, c.says) || !strings.Contains(e.Hint, "Options.ShimPath") || strings.Contains(e.Error(), "\n") {
				t.Errorf("%#v, want %s … %q", err, c.code, c.says)
			}
		})
	}
	_, path := installed(t)
	if _, err := New(Options{ConfigDir: t.TempDir(), Env: []string{"PATH=" + strings.TrimPrefix(path, "/")}}); pluginapi.AsError(err) == nil {
		t.Error("a relative entry of PATH was searched")
	}
}
