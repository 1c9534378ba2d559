//go:build unix

package broker

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/socket"
)

// listenerFD is the file descriptor of its socket that a program is started with, so that whoever
// started it can connect at once.
const listenerFD = 3

func connect(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := socket.Check(conn.(*net.UnixConn)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// start starts the program in a session of its own, with a socket, and with its words in a file
// beside that. Nobody else starts one meanwhile.
func (p Program) start(path string) error {
	rawio.CloseOnExec()
	l, err := socket.Listen(path)
	if err != nil {
		return err
	}
	defer l.Close() // the program has its own descriptor of it
	file, err := l.File()
	if err != nil {
		return err
	}
	defer file.Close()
	log, err := os.OpenFile(filepath.Join(p.Dir, "places.log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.Path, append(slices.Clone(p.Args), path)...)
	cmd.Dir, cmd.Env = "/", p.Env
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begin := p.Starting
	if begin == nil {
		begin = func(start func() (int, error)) error { _, err := start(); return err }
	}
	err = begin(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		_ = os.Remove(path)
		return err
	}
	go func() { _ = cmd.Wait() }() // ends with it, or with this process
	return nil
}

// Inherited is the socket that this process was started with.
func Inherited() (*net.UnixListener, error) {
	unix.CloseOnExec(listenerFD)
	file := os.NewFile(listenerFD, "socket")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		_ = l.Close()
		return nil, syscall.EINVAL
	}
	u.SetUnlinkOnClose(false)
	return u, nil
}
