package serve

import (
	"errors"
	"net"
)

// There are no runs on Windows yet, so there is nothing to serve.

func listenPrivate(string) (net.Listener, error) { return nil, errors.ErrUnsupported }

func checkPeer(net.Conn) error { return errors.ErrUnsupported }

// Spawn fails.
func Spawn(dir, program string, args, env []string) (<-chan struct{}, error) {
	return nil, errors.ErrUnsupported
}

// Umask is nil: there is none.
func Umask() *int { return nil }
