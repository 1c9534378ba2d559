//go:build unix

// Package socket has sockets of the file system that are their user's alone.
package socket

import (
	"errors"
	"net"
	"os"
	"strconv"
)

// Listen makes a socket that is the user's alone from its first moment: it gets its name when
// its mode is right, and takes the place of one that was there. The name stays when the
// listener is closed.
func Listen(path string) (*net.UnixListener, error) {
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
	return l, nil
}

var errPeer = errors.New("the socket's other end is another user's")

// Check wants that the other end is a process of this user.
func Check(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
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
