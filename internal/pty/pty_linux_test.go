package pty_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/pty"
)

// shell runs a script on a new terminal and returns the master.
func shell(t *testing.T, script string) (*os.File, *exec.Cmd) {
	t.Helper()
	master, slave, err := pty.Open(120, 40)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		master.Close()
	})
	return master, cmd
}

// until reads until the text has come.
func until(t *testing.T, master *os.File, want string) string {
	t.Helper()
	_ = master.SetReadDeadline(time.Now().Add(time.Minute))
	var all []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(all, []byte(want)) {
		n, err := master.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			t.Fatalf("%v after %q, without %q", err, all, want)
		}
	}
	return string(all)
}

func TestSizeAndResize(t *testing.T) {
	t.Parallel()
	master, _ := shell(t, `trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.05; done`)
	until(t, master, "40 120")
	if err := pty.Resize(master, 99, 33); err != nil {
		t.Fatal(err)
	}
	until(t, master, "33 99")
}

// It is the controlling terminal of the child: job control works, and the
// terminal's own keys reach the foreground group only.
func TestJobControl(t *testing.T) {
	t.Parallel()
	master, _ := shell(t, `set -m; stty -echo; echo tty=$(tty </dev/tty); sleep 1000 & echo back; sh -c 'trap "exit 3" INT; sleep 1000'; echo fore $?; jobs; kill %1`)
	if said := until(t, master, "back"); !strings.Contains(said, "tty=/dev/") {
		t.Errorf("no controlling terminal: %q", said)
	}
	time.Sleep(100 * time.Millisecond) // for the foreground job to be there
	if _, err := master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if said := until(t, master, "sleep 1000"); !strings.Contains(said, "fore 3") {
		t.Errorf("Ctrl-C: %q", said)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	master, _ := shell(t, "exec sleep 1000")
	_ = master.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := master.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

// A hundred readers that wait hold no thread each.
func TestNoThreadEach(t *testing.T) {
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(tasks)
	}
	before := threads()
	const count = 100
	for range count {
		master, slave, err := pty.Open(80, 24)
		if err != nil {
			t.Fatal(err)
		}
		defer slave.Close()
		go func() { _, _ = master.Read(make([]byte, 1)) }()
		defer master.Close()
	}
	time.Sleep(100 * time.Millisecond)
	if more := threads() - before; more > count/10 {
		t.Errorf("%d threads for %d terminals", more, count)
	}
}

func TestInvalidSizesAreRefused(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{0, 24}, {80, 0}, {-1, 24}, {1 << 20, 24}} {
		if _, _, err := pty.Open(size[0], size[1]); err == nil {
			t.Errorf("%v was opened", size)
		}
	}
}

const namespaceEnv = "AMUX_TEST_NAMESPACE"

// alone reports whether the test runs in a mount namespace of its own. If not, it
// runs the test again in one.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceEnv) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("no mount namespace can be made here: %v %s", err, out)
	case err != nil || !bytes.Contains(out, []byte("--- PASS")):
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// mountTerminals gives the namespace a devpts of its own.
func mountTerminals(t *testing.T, options string) {
	t.Helper()
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,"+options),
		unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, ""),
	)
	if errors.Is(err, unix.EPERM) {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// When all are in use the error names the limit, and none is left half open.
func TestExhaustion(t *testing.T) {
	if !alone(t) {
		return
	}
	mountTerminals(t, "max=2")
	for range 2 {
		master, slave, err := pty.Open(80, 24)
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer slave.Close()
	}
	_, _, err := pty.Open(80, 24)
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, errors.ErrUnsupported) ||
		!strings.Contains(err.Error(), "mount option max=2 of /dev/pts") || !strings.Contains(err.Error(), "/proc/sys/kernel/pty/max") {
		t.Errorf("%v", err)
	}
}

func TestSystemWithoutTerminals(t *testing.T) {
	if !alone(t) {
		return
	}
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("none", "/dev", "tmpfs", 0, ""),
	); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if _, _, err := pty.Open(80, 24); !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A program expects a terminal whose reads and writes wait.
func TestSlaveIsBlocking(t *testing.T) {
	t.Parallel()
	master, slave, err := pty.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	conn, err := slave.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("flags %#x, %v: the slave does not block", flags, err)
		}
	})
}
