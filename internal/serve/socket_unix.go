//go:build unix

package serve

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// listenPrivate makes a socket that is the user's alone from its first moment: it
// gets its name when its mode is right.
func listenPrivate(path string) (net.Listener, error) {
	fresh := path + strconv.Itoa(os.Getpid())
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		l.Close()
		_ = os.Remove(fresh)
		return nil, err
	}
	return &private{l, path}, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// private takes its socket away before it closes.
type private struct {
	net.Listener
	path string
}

func (p *private) Close() error {
	_ = os.Remove(p.path)
	return p.Listener.Close()
}

var errPeer = errors.New("the socket's other end is another user's")

// checkPeer wants that the other end is a process of this user.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	uid := -1
	if err := raw.Control(func(fd uintptr) { uid = peer(int(fd)) }); err != nil {
		return err
	}
	if uid != os.Getuid() {
		return errPeer
	}
	return nil
}

// Spawn starts a server: a program in a session of its own that has nothing of
// this process but what it is given, with its words in a log in the runtime folder
// dir. Exited is closed when it has ended.
func Spawn(dir, program string, args, env []string, starting func(start func() (pid int, err error)) error) (exited <-chan struct{}, err error) {
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	rawio.CloseOnExec()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = "/", env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Known as this process's own: it is no orphan to be swept with those of a run.
	err = starting(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { // ends with it, or with this process
		_ = cmd.Wait() // what it had to say is in its log
		close(done)
	}()
	return done, nil
}

// Umask is this process's.
func Umask() *int {
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	return &mask
}
