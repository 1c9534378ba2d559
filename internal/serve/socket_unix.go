//go:build unix

package serve

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/socket"
)

// listenPrivate makes a socket that is the user's alone.
func listenPrivate(path string) (net.Listener, error) {
	l, err := socket.Listen(path)
	if err != nil {
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

// checkPeer wants that the other end is a process of this user.
func checkPeer(conn net.Conn) error { return socket.Check(conn.(*net.UnixConn)) }

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
