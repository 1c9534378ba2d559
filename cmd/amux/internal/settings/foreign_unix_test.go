//go:build unix

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// A project's file comes with a cloned repository, which may put anything there.
func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(dir, file string) error
		want string
		user bool // the user's own file may be this
	}{
		{"device", func(_, file string) error { return os.Symlink("/dev/zero", file) }, "config.toml: it is a", false},
		{"FIFO", func(_, file string) error { return syscall.Mkfifo(file, 0o600) }, "config.toml: it is a FIFO", false},
		{"folder", func(_, file string) error { return os.Mkdir(file, 0o700) }, "config.toml: it is a folder", false},
		{"huge", func(_, file string) error {
			return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<30))
		}, "config.toml: it is larger than 256 KiB", false},
		{"link", func(dir, file string) error {
			other := filepath.Join(dir, "other.toml")
			return errors.Join(os.WriteFile(other, []byte(`model = "m"`), 0o600), os.Symlink(other, file))
		}, "config.toml: it is a link", true},
		{"long key", func(_, file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("a.", 1<<16)+"b = 1"), 0o600)
		}, "config.toml:1: unknown key a.a.", false},
		{"deep", func(_, file string) error {
			return os.WriteFile(file, []byte("tags = "+strings.Repeat("[", 1<<17)), 0o600)
		}, "config.toml:1: ", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, project := t.TempDir(), t.TempDir()
			own := filepath.Join(project, ".agent-mux")
			if err := errors.Join(os.Mkdir(own, 0o700), test.make(own, filepath.Join(own, Name)),
				test.make(config, filepath.Join(config, Name))); err != nil {
				t.Fatal(err)
			}
			check := func(where string, err error, fine bool) {
				t.Helper()
				if fine {
					if err != nil {
						t.Errorf("%s: %v", where, err)
					}
					return
				}
				if !errors.Is(err, pluginapi.CodeConfig) || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 500 {
					t.Errorf("%s: got %.500v, want %s", where, err, test.want)
				}
			}
			_, err := Load(t.TempDir(), project)
			check("project", err, false)
			_, err = Load(config, "")
			check("user", err, test.user)
		})
	}
}

func TestFolderOfSettingsIsNoLink(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(own, other string) error{
		"it is a link": func(own, other string) error { return os.Symlink(other, own) },
		"it is a file": func(own, _ string) error { return os.WriteFile(own, nil, 0o600) },
	} {
		project, other := t.TempDir(), t.TempDir()
		write(t, other, `model = "m"`)
		own := filepath.Join(project, ".agent-mux")
		if err := make(own, other); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(t.TempDir(), project); err == nil || !strings.Contains(err.Error(), own+": "+name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

func TestOthersCannotWriteTheUsersFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, `model = "m"`)
	if err := os.Chmod(filepath.Join(dir, Name), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, ""); err == nil || !strings.Contains(err.Error(), "mode 0666") {
		t.Errorf("got %v", err)
	}
}
