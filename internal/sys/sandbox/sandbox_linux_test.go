package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test is the program that is restricted: it tries what it is told, and says what
// came of it.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "try" {
		for line := range strings.Lines(os.Args[2]) {
			fmt.Println(try(strings.Fields(line)))
		}
		os.Exit(0)
	}
	if len(os.Args) == 4 && os.Args[1] == "start" {
		fmt.Println(Offered().Landlock)
		cmd := exec.Command(os.Args[0], "try", os.Args[3])
		cmd.Dir, cmd.Stdout, cmd.Stderr = os.Args[2], os.Stdout, os.Stderr
		over := make(chan struct{})
		if err := Start(cmd, Limits{Files: files, Data: data}, over); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = cmd.Wait()
		close(over)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func try(words []string) error {
	switch what, path := words[0], words[len(words)-1]; what {
	case "write":
		return os.WriteFile(path, []byte("x"), 0o600)
	case "append":
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			err = f.Close()
		}
		return err
	case "truncate":
		return os.Truncate(path, 0)
	case "remove":
		return os.Remove(path)
	case "mkdir":
		return os.Mkdir(path, 0o700)
	case "mkfifo":
		return syscall.Mkfifo(path, 0o600)
	case "link":
		return os.Link(words[1], path)
	case "symlink":
		return os.Symlink(words[1], path)
	case "rename":
		return os.Rename(words[1], path)
	case "read":
		_, err := os.ReadFile(path)
		return err
	case "run":
		return exec.Command(path, "-c", "exit 0").Run()
	case "child-writes":
		return exec.Command("/bin/sh", "-c", "echo x > "+path).Run()
	case "signal-parent":
		return syscall.Kill(os.Getppid(), 0)
	case "read-parent":
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		return err
	case "privileges":
		on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err == nil && on == 1 {
			err = errors.New("none")
		}
		return err
	case "files":
		has := limit(unix.RLIMIT_NOFILE)
		err := errors.Join(
			unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: has.Max + 1, Max: has.Max + 1}))
		return fmt.Errorf("%d %d %w", has.Cur, has.Max, err)
	case "data":
		return fmt.Errorf("%d", limit(unix.RLIMIT_DATA).Max)
	}
	return errors.New("what is that?")
}

// limit waits for one that this process did not have from the start.
func limit(resource int) (has unix.Rlimit) {
	for since := time.Now(); time.Since(since) < time.Minute; time.Sleep(time.Millisecond) {
		if unix.Getrlimit(resource, &has) == nil && (has.Max == files || has.Max == data) {
			break
		}
	}
	return has
}

const (
	files = 300
	data  = 1 << 40
)

// run tries lines in the sandbox, and returns what came of each.
func run(t *testing.T, dir, lines string) []string {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command("/proc/self/exe", "try", lines)
	cmd.Path, cmd.Dir, cmd.Stdout, cmd.Stderr = self(t), dir, &out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	over := make(chan struct{})
	defer close(over)
	if err := Start(cmd, Limits{Files: files, Data: data}, over); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func self(t *testing.T) string {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Beneath its folder a program may do as it likes, elsewhere it changes nothing, and
// it reads and runs what it could before.
func TestWritesInItsFolderOnly(t *testing.T) {
	t.Parallel()
	abi := Offered().Landlock
	if abi == 0 {
		t.Skip("this kernel does not offer Landlock")
	}
	root := t.TempDir()
	own, other := filepath.Join(root, "own"), filepath.Join(root, "other")
	for _, dir := range []string{own, other, own + "/a", own + "/b", other + "/empty"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := other + "/file"
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	tries := []struct {
		line string
		may  bool
		abi  int // from which on
	}{
		{"write " + own + "/x", true, 1},
		{"append " + own + "/x", true, 1},
		{"truncate " + own + "/x", true, 1},
		{"mkdir " + own + "/dir", true, 1},
		{"remove " + own + "/dir", true, 1},
		{"rename " + own + "/x " + own + "/y", true, 1},
		{"rename " + own + "/y " + own + "/a/y", true, 2},
		{"mkfifo " + own + "/fifo", true, 1},
		{"child-writes " + own + "/z", true, 1},
		{"write /dev/null", true, 1},
		{"child-writes /dev/null", true, 1},
		{"read " + file, true, 1},
		{"run /bin/sh", true, 1},
		{"write " + file, false, 1},
		{"append " + file, false, 1},
		{"truncate " + file, false, 3},
		{"remove " + file, false, 1},
		{"remove " + other + "/empty", false, 1},
		{"rename " + file + " " + own + "/file", false, 1},
		{"rename " + own + "/z " + other + "/z", false, 1},
		{"link " + file + " " + own + "/linked", false, 1},
		{"write " + other + "/new", false, 1},
		{"mkdir " + other + "/new", false, 1},
		{"mkfifo " + other + "/new", false, 1},
		{"symlink /etc " + other + "/new", false, 1},
		{"child-writes " + other + "/new", false, 1},
		{"symlink " + other + " " + own + "/out", true, 1},
		{"write " + own + "/out/file", false, 1},
		{"write " + own + "/../other/file", false, 1},
	}
	var lines []string
	for _, try := range tries {
		lines = append(lines, try.line)
	}
	for i, got := range run(t, own, strings.Join(lines, "\n")) {
		if try := tries[i]; abi >= try.abi && (got == "<nil>") != try.may {
			t.Errorf("%s: %s", try.line, got)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "kept" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
	if left, _ := os.ReadDir(other); len(left) != 2 {
		t.Errorf("outside there is %v", left)
	}
}

func TestSignalsItsOwnOnly(t *testing.T) {
	t.Parallel()
	if !Offered().Signals {
		t.Skip("this kernel cannot keep signals inside")
	}
	if got := run(t, t.TempDir(), "signal-parent"); got[0] == "<nil>" {
		t.Error("it can signal who started it")
	}
}

// The host's environment holds what the user has, keys among it.
func TestHidesOtherProcesses(t *testing.T) {
	t.Parallel()
	if Offered().Landlock == 0 {
		t.Skip("this kernel does not offer Landlock")
	}
	if got := run(t, t.TempDir(), "read-parent"); got[0] == "<nil>" {
		t.Error("it can read the environment of the process that started it")
	}
}

func TestNoNewPrivilegesAndLimits(t *testing.T) {
	t.Parallel()
	got := run(t, t.TempDir(), "privileges\nfiles\ndata")
	if got[0] != "none" {
		t.Errorf("privileges: %s", got[0])
	}
	if got[1] != "300 300 operation not permitted" {
		t.Errorf("descriptors: %s", got[1])
	}
	if want := fmt.Sprint(uint64(data)); got[2] != want {
		t.Errorf("memory: %s, want %s", got[2], want)
	}
}

// What a sandbox takes away is taken from nobody else, whichever thread it was.
func TestCallerKeepsItsRights(t *testing.T) {
	t.Parallel()
	for range 20 {
		run(t, t.TempDir(), "privileges")
	}
	for range 100 {
		if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var has unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &has)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &has); err != nil {
		t.Errorf("descriptors: %+v, %v", has, err)
	}
	status, err := os.ReadFile("/proc/self/status") // the main thread's
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Error("the main thread has given up its privileges")
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	defer close(over)
	cmd := exec.Command("/no/such/program")
	cmd.Dir = t.TempDir()
	if err := Start(cmd, Limits{}, over); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	cmd = exec.Command("/bin/true")
	cmd.Dir = "/no/such/folder"
	if err := Start(cmd, Limits{}, over); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("no folder: %v", err)
	}
}

// Where the kernel does not offer Landlock a program is started without, and keeps to
// the rest.
func TestWithoutLandlock(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "file")
	lines := "privileges\nfiles\nwrite " + dir + "/x\nwrite " + outside
	cmd := exec.Command(self(t), "start", dir, lines)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	started := make(chan error)
	onOwnThread(func() {
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = hideLandlock()
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	})
	if err := <-started; errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EPERM) {
		t.Skipf("this kernel has no filters: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	if want := "0\nnone\n300 300 operation not permitted\n<nil>\n<nil>\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// hideLandlock makes this thread's kernel one that was built without.
func hideLandlock() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
