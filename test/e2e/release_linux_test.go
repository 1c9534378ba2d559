package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The packages install into a root of their own, where nothing else is, and amux runs
// there: by the name on the path, with its plugins, as the user would. What the package
// tool installed it removes again.
func TestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds all packages: make test")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can install packages")
	}
	t.Parallel()
	dist := t.TempDir()
	sh := func(t *testing.T, line string, env ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), env...)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, said)
		}
		return string(said)
	}
	sh(t, "sh tools/packages.sh "+dist, "VERSION=1.2.3")
	for name, tool := range map[string]struct{ pattern, install, remove string }{
		"deb": {"*.deb", "mkdir -p $ROOT/var/lib/dpkg/updates $ROOT/var/lib/dpkg/info && touch $ROOT/var/lib/dpkg/status && dpkg --log=/dev/null --root=$ROOT -i $PACKAGE", "dpkg --log=/dev/null --root=$ROOT -r amux"},
		"rpm": {"*.rpm", "rpm --root $ROOT --initdb && rpm --root $ROOT -i --nodeps $PACKAGE", "rpm --root $ROOT -e amux"},
		"apk": {"*.apk", "tar -C $ROOT --warning=no-unknown-keyword -xzf $PACKAGE", "rm -r $ROOT/usr"}, // no tool but Alpine's own installs it
	} {
		t.Run(name, func(t *testing.T) {
			if program, _, _ := strings.Cut(tool.remove, " "); name != "apk" {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed: apt install %[1]s", program)
				}
			}
			root := t.TempDir()
			found, _ := filepath.Glob(filepath.Join(dist, tool.pattern))
			if len(found) != 1 {
				t.Fatalf("packages %q", found)
			}
			in := []string{"ROOT=" + root, "PACKAGE=" + found[0]}
			sh(t, tool.install, in...)
			for _, path := range []string{
				"usr/share/man/man1/amux.1.gz", "usr/share/man/man1/amux-run.1.gz", "usr/share/bash-completion/completions/amux",
				"usr/share/zsh/site-functions/_amux", "usr/share/fish/vendor_completions.d/amux.fish", "usr/share/doc/amux/LICENSE", "usr/share/doc/amux/NOTICE",
			} {
				if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", path, err)
				}
			}
			// In a namespace of its own, so that /proc is that of the root.
			const inside = "unshare -pfm --mount-proc=$ROOT/proc env -i HOME=/home/me PATH=/usr/bin:/usr/sbin:/bin chroot $ROOT amux "
			said := sh(t, "mkdir -p $ROOT/proc $ROOT/dev $ROOT/tmp $ROOT/home/me && mknod -m 666 $ROOT/dev/null c 1 3 && "+inside+"--version && "+inside+"run demo '[say:packaged]' </dev/null", in...)
			if !strings.Contains(said, "amux 1.2.3 (") || !strings.Contains(said, "packaged") {
				t.Errorf("amux said %s", said)
			}
			sh(t, tool.remove, in...)
			if _, err := os.Lstat(filepath.Join(root, "usr/bin/amux")); err == nil {
				t.Error("amux was not removed")
			}
		})
	}
}
