//go:build unix

package pluginapi

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Credentials are those of a connection that needs none: its socket lies in a folder
// of the user's own. They are where gRPC hands out its connections, and give it ones
// that cost less; see internal/sys/rawio.
func Credentials() credentials.TransportCredentials {
	return plain{insecure.NewCredentials()}
}

type plain struct {
	credentials.TransportCredentials
}

func (p plain) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return p.handshake(c, func(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
		return p.TransportCredentials.ClientHandshake(ctx, authority, c)
	})
}

func (p plain) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return p.handshake(c, p.TransportCredentials.ServerHandshake)
}

func (p plain) Clone() credentials.TransportCredentials { return plain{p.TransportCredentials.Clone()} }

func (p plain) handshake(c net.Conn, shake func(net.Conn) (net.Conn, credentials.AuthInfo, error)) (net.Conn, credentials.AuthInfo, error) {
	if u, ok := c.(*net.UnixConn); ok {
		cheap, err := newConn(u)
		if err != nil {
			return nil, nil, err
		}
		c = cheap
	}
	return shake(c)
}

// conn is a net.Conn without deadlines for writing, which gRPC sets none of.
type conn struct {
	*rawio.Conn
	local, remote net.Addr
}

// newConn takes over the connection.
func newConn(u *net.UnixConn) (net.Conn, error) {
	defer u.Close()
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	if err := raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, syscall.F_DUPFD_CLOEXEC, 0) }); err != nil || failed != nil {
		return nil, errors.Join(err, failed)
	}
	c, err := rawio.NewConn(fd)
	if err != nil {
		return nil, err
	}
	return &conn{c, u.LocalAddr(), u.RemoteAddr()}, nil
}

func (c *conn) LocalAddr() net.Addr              { return c.local }
func (c *conn) RemoteAddr() net.Addr             { return c.remote }
func (c *conn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
