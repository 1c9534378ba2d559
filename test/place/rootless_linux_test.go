package place

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/amux-dev/amux/internal/test/dockerd"
	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/image"
)

// lonely is the number of a user without rights, who has numbers of their own for the users in
// containers.
const lonely = 5000

// asUser runs a command as that user, in a mount namespace where the user is known, the programs
// of this checkout can be reached and control groups are those of today, which crun demands.
const asUser = `#!/bin/sh
exec unshare --mount --propagation private sh -c '
set -e
mount --bind "%[1]s" "%[2]s/bin"
for file in passwd group subuid subgid; do mount --bind "%[2]s/$file" "/etc/$file"; done
if [ "$(stat -f -c %%T /sys/fs/cgroup)" != cgroup2fs ]; then
	umount -R /sys/fs/cgroup
	mount -t cgroup2 none /sys/fs/cgroup
fi
mount --make-rshared /
exec setpriv --reuid %[3]d --regid %[3]d --clear-groups -- "$@"
' sh "$@"
`

// rootless makes a user without rights whose podman is theirs alone.
func rootless(t *testing.T, script string) (v *visitor, podman func(args ...string) string) {
	t.Helper()
	if ids, err := os.ReadFile("/proc/self/uid_map"); err != nil || os.Getuid() != 0 || !strings.Contains(string(ids), "4294967295") {
		t.Skip("a user of its own needs root")
	}
	for _, program := range []string{"podman", "/usr/libexec/podman/catatonit", "newuidmap", "crun", "busybox", "unshare", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: podman, catatonit, uidmap, crun, busybox-static)", program)
		}
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("there is no %s for the test to put another in its place", file)
		}
	}
	v = &visitor{home.New(t), nil}
	dir := t.TempDir()
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string, mode fs.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	programs := filepath.Dir(v.Amux)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "passwd"), fmt.Sprintf("root:x:0:0::/root:/bin/sh\nlonely:x:%[1]d:%[1]d::%[2]s:/bin/sh\n", lonely, v.User), 0o644)
	write(filepath.Join(dir, "group"), fmt.Sprintf("root:x:0:\nlonely:x:%d:\n", lonely), 0o644)
	write(filepath.Join(dir, "subuid"), "lonely:200000:65536\n", 0o644)
	write(filepath.Join(dir, "subgid"), "lonely:200000:65536\n", 0o644)
	as := filepath.Join(dir, "as-user")
	write(as, fmt.Sprintf(asUser, programs, dir, lonely), 0o755)
	v.Amux = filepath.Join(dir, "amux")
	write(v.Amux, fmt.Sprintf("#!/bin/sh\nexec %s %s/bin/amux \"$@\"\n", as, dir), 0o755)
	write(filepath.Join(v.User, ".config/containers/containers.conf"), "[containers]\ncgroups = \"disabled\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"crun\"\n", 0o644)
	write(filepath.Join(v.User, ".config/containers/storage.conf"), "[storage]\ndriver = \"vfs\"\n", 0o644)
	write(filepath.Join(v.User, "rootfs.tar"), string(image.Rootfs(t)), 0o644)
	v.config(fmt.Sprintf("[places.box]\ndocker = %q\nengine = \"podman\"\nargs = [\"--network\", \"none\"]\n[agents.script]\nadapter = \"command\"\ncommand = ['/bin/sh', '-c', '''%s''']", dockerd.Image, script))
	for _, root := range []string{v.User, v.Getenv("XDG_RUNTIME_DIR")} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, lonely, lonely)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // what holds the user's namespaces open
		for _, dir := range processesOf(lonely) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	podman = func(args ...string) string {
		t.Helper()
		return v.Sh(nil, append([]string{as, "podman"}, args...)...)
	}
	if said, err := v.Try(nil, as, "podman", "import", filepath.Join(v.User, "rootfs.tar"), dockerd.Image); err != nil {
		t.Skipf("no podman without root can be used here: %v %s", err, said)
	}
	if said, err := v.Try(nil, as, "podman", "run", "--rm", "--network", "none", dockerd.Image, "/bin/sh", "-c", "exit 0"); err != nil {
		t.Skipf("no podman without root can be used here: %v %s", err, said)
	}
	return v, podman
}

// processesOf are the folders in /proc of a user's processes.
func processesOf(uid uint32) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if info, err := os.Stat(dir); err == nil && info.Sys().(*syscall.Stat_t).Uid == uid {
			found = append(found, dir)
		}
	}
	return found
}

// With an engine that needs no root a run is what it is with any other: the agent is the user, and
// nothing is left.
func TestRootless(t *testing.T) {
	t.Parallel()
	v, podman := rootless(t, `read x; echo "got $x in $PWD, home $HOME"; [ "$x" = write ] && echo made >made && exit 0; `+waiting)
	empty := func() {
		t.Helper()
		v.Until("no container is left", func() bool { return podman("ps", "--all", "--quiet") == "" })
	}
	if said := v.Sh(nil, v.Amux, "run", "--on", "box", "script", "write"); !strings.Contains(said, "got write in "+v.Dir+", home /home/amux") {
		t.Errorf("it says: %s", said)
	}
	made, err := os.Stat(filepath.Join(v.Dir, "made"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := made.Sys().(*syscall.Stat_t).Uid; uid != lonely {
		t.Errorf("what it made belongs to %d", uid)
	}
	empty()
	for what, c := range map[string]struct {
		end  func(id string)
		says string
	}{
		"podman kill": {func(id string) { podman("kill", name(id)) }, "the run's container ended with code 137"},
		"podman rm":   {func(id string) { podman("rm", "--force", name(id)) }, "the run's container "}, // it was killed, then removed
		"amux stop":   {func(id string) { v.Sh(nil, v.Amux, "stop", id) }, "the run was stopped"},
		"its own end": {func(string) {
			if err := os.WriteFile(filepath.Join(v.Dir, "go"), nil, 0o644); err != nil {
				t.Error(err)
			}
		}, ""},
	} {
		out := v.Sh(nil, v.Amux, "run", "-d", "--grace", "100ms", "--on", "box", "script", "wait")
		id := out[strings.LastIndexByte(out, '\n')+1:]
		v.started(id)
		c.end(id)
		if end := v.end(id); end.Message != c.says && !strings.HasPrefix(end.Message, c.says) || c.says == "" && end.State != "completed" {
			t.Errorf("%s: %+v", what, end)
		}
		empty()
		_ = os.Remove(filepath.Join(v.Dir, "go"))
	}
	v.Until("podman's service has ended", func() bool {
		return !slices.ContainsFunc(processesOf(lonely), func(dir string) bool {
			command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			return strings.Contains(string(command), "system\x00service")
		})
	})
}
