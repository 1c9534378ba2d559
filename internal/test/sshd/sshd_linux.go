package sshd

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Server is an ssh server whose one user is the user of the tests, with a home of its own.
type Server struct {
	Host    string // its name for ssh
	Home    string
	Port    int
	dir     string
	command []string
	cmd     *exec.Cmd
	said    bytes.Buffer
}

const program = "/usr/sbin/sshd"

// Start starts a server, or skips the test where none can be. All servers of a test program
// have the same users: the home is that of the first.
func Start(t *testing.T) *Server {
	t.Helper()
	return start(t, program)
}

// StartMachine is Start for one that can Restart: all that runs there is in a pid namespace.
func StartMachine(t *testing.T) *Server {
	t.Helper()
	boot := filepath.Join(t.TempDir(), "boot")
	return start(t, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
		`cat /proc/sys/kernel/random/uuid >"$0" && mount --bind "$0" /proc/sys/kernel/random/boot_id || exit 1; "$@" & wait`, boot, program)
}

func start(t *testing.T, command ...string) *Server {
	t.Helper()
	if ids, err := os.ReadFile("/proc/self/uid_map"); err != nil || os.Getuid() != 0 || !strings.Contains(string(ids), "4294967295") {
		t.Skip("an ssh server with users of its own needs root")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is not installed (Debian: openssh-server)", program)
	}
	home, err := users()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Home: home, dir: t.TempDir()}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", s.path(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v %s", err, out)
		}
	}
	public, err := os.ReadFile(s.path("user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	s.Host = fmt.Sprintf("box-%d", s.Port)
	s.write(t, "authorized", string(public))
	s.write(t, "sshd_config", fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s
AuthorizedKeysFile %s
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
MaxSessions 100
AcceptEnv PAGES
`, s.Port, s.path("host"), s.path("authorized")))
	s.command = append(command, "-D", "-e", "-f", s.path("sshd_config"))
	s.run(t)
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("sshd said:\n%s", s.said.String())
		}
	})
	s.Reach(t, s.Host, s.Port)
	return s
}

// Restart ends all that runs on the machine at once, as when its power is cut, and starts it again.
// Its files stay, but for what off takes away meanwhile.
func (s *Server) Restart(t *testing.T, off func()) {
	t.Helper()
	s.stop()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
		if err != nil {
			break
		}
		conn.Close()
		if time.Now().After(end) {
			t.Fatal("the server goes on")
		}
	}
	off()
	s.run(t)
}

func (s *Server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// run starts the server and waits until it is there.
func (s *Server) run(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.command[0], s.command[1:]...)
	s.cmd.Stderr = &s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port)); err == nil {
			conn.Close()
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// PID is that of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Reach has ssh reach the server by that name at that port.
func (s *Server) Reach(t *testing.T, name string, port int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.Home, ".ssh", "config"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "Host %s\n  HostName 127.0.0.1\n  Port %d\n  IdentityFile %s\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n", name, port, s.path("user"))
}

// Set gives ssh a further setting for a name of the server.
func (s *Server) Set(t *testing.T, name, setting string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.Home, ".ssh", "config"), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "Host %s\n  %s\n", name, setting)
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// users gives root, in this mount namespace, a home that is thrown away, and sshd the user that
// it wants.
var users = sync.OnceValues(func() (home string, err error) {
	if home, err = os.MkdirTemp("/tmp", "amux-sshd"); err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		return "", err
	}
	passwd := filepath.Join(home, "passwd")
	text := fmt.Sprintf("root:*:0:0:root:%s:/bin/bash\nsshd:*:101:65534::/run/sshd:/usr/sbin/nologin\n", home)
	if err := os.WriteFile(passwd, []byte(text), 0o644); err != nil {
		return "", err
	}
	if err := unix.Mount(passwd, "/etc/passwd", "", unix.MS_BIND, ""); err != nil {
		return "", fmt.Errorf("have users of the test's own: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return "", err
	}
	return home, os.Mkdir("/run/sshd", 0o755)
})

// Clean removes what Start has made outside of the tests' own folders. It is for TestMain.
func Clean() {
	if home, err := users(); err == nil {
		_ = os.RemoveAll(home)
	}
}
